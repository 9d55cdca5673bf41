"""`python -m dragoman`: the same as the `dragoman` command."""

from dragoman.cli import main

if __name__ == "__main__":
    main()
