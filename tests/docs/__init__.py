"""The documentation, tested: snippets are run or checked, links lead somewhere, generated tables are fresh."""
