"""Fills a PostgreSQL database with tasks: a few are really sent, and the rest are copies that the database makes.

A million take minutes, where sending them would take the best part of an hour.
"""

from tests.harness.postgres import execute

# The copies are older than what they are made of, a millisecond each; their ids are of that time, as real ones are.
_COPY = """
SET synchronous_commit = off;
CREATE TEMP TABLE pattern AS
    SELECT *, row_number() OVER (ORDER BY context_id) - 1 AS place, count(*) OVER () AS patterns FROM task;
CREATE TEMP TABLE copy AS
    SELECT number, p.id AS of, p.created_at - (total - number) AS at,
        format('%s-%s-7%s-8%s-%s', substr(stamp, 1, 8), substr(stamp, 9), substr(mess, 1, 3), substr(mess, 4, 3),
        substr(mess, 7, 12)) AS id
    FROM pattern p
    JOIN (SELECT number, {copies} AS total FROM generate_series(0, {copies} - 1) number) n ON number % patterns = place
    CROSS JOIN LATERAL (SELECT lpad(to_hex(p.created_at - (total - number)), 12, '0') AS stamp,
        md5(number::text) AS mess) s;
INSERT INTO task (id, scope_id, context_id, visible, counted, state, status_at, status_seq, seq, created_at, metadata,
    request, epoch, attempt, dispatch, owner, deadline_at, parked_ms)
    SELECT c.id, t.scope_id, t.context_id, t.visible, t.counted, t.state, c.at, t.status_seq, t.seq, c.at, t.metadata,
    t.request, t.epoch, t.attempt, t.dispatch, t.owner, t.deadline_at, t.parked_ms
    FROM copy c JOIN task t ON t.id = c.of ORDER BY c.number;
INSERT INTO event (task_id, seq, attempt, at, payload)
    SELECT c.id, e.seq, e.attempt, c.at, e.payload FROM copy c JOIN event e ON e.task_id = c.of
    ORDER BY c.number, e.seq;
INSERT INTO identity (scope_id, message_id, digest, task_id)
    SELECT i.scope_id, convert_to(c.id, 'UTF8'), i.digest, c.id FROM copy c JOIN identity i ON i.task_id = c.of
    ORDER BY c.number;
INSERT INTO counter_step (scope_id, context_id, state, n)
    SELECT scope_id, context_id, state, count(*) FROM task JOIN copy ON copy.id = task.id GROUP BY 1, 2, 3
    UNION ALL SELECT scope_id, '', state, count(*) FROM task JOIN copy ON copy.id = task.id GROUP BY 1, 3;
ANALYZE;
"""


def multiply(url: str, copies: int) -> None:
    """Add so many copies of the tasks of a database, which are completed and each in a context of its own."""
    execute(url, _COPY.format(copies=copies))
