"""Printing rows: plain where no terminal is."""

import pytest

from dragoman.cli.output import print_table

ROWS = [{"id": "a", "name": "Ä"}, {"id": "b", "name": "[red]x[/red]"}]


def test_rows_are_tab_separated_lines_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(ROWS)
    captured = capsys.readouterr()
    assert captured.out == "id\tname\na\tÄ\nb\t[red]x[/red]\n"
    assert captured.err == ""


def test_no_rows_are_said_on_standard_error_so_that_nothing_is_read_as_a_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table([], empty="no tasks")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "no tasks\n")


def test_a_terminal_is_shown_a_table_with_every_value_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_table(ROWS)
    written = capsys.readouterr().out
    assert "\t" not in written
    for text in ("id", "name", "Ä", "[red]x[/red]"):
        assert text in written
