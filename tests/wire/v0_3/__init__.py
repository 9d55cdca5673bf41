"""The two JSON forms of A2A 0.3: golden files, and properties of the way through the model and back."""
