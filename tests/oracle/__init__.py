"""The oracle: random tables with random lives, asked random statements in three ways.

Whatever an index does, a statement gives what plain DataFusion gives over the same rows in
memory, and what the session gives without indexes. Everything follows from an integer, the seed
of a world: its two tables `t` and `u`, what happens to `t`, and what it is asked in between.

    python -m tests.oracle --seed 1 --seconds 60

| file | what it draws or does |
| --- | --- |
| `kinds` | types of values, the values that columns hold, and literals to compare them with |
| `columns` | columns of those: plain ones, lists of labels, lists of structs |
| `changes` | what happens to a table, each done to Lance, done to the rows, and as source text |
| `worlds` | tables and their histories |
| `conditions`, `elements` | predicates; a new kind of index gets its leaves here (`LEAVES`) |
| `shapes`, `near_shapes` | statements around predicates, distances and table functions |
| `situations` | the tables at one moment, in a session and in plain DataFusion |
| `pools` | conditions for a moment, most of them TRUE on some rows but not on all |
| `asking` | the three runs of a statement, and how their answers compare |
| `exploring` | every statement that a world is asked |
| `tally` | what was hit; what must be hit (a new rule or refusal gets its line here) |
| `shrinking`, `scripts` | the smallest case that still differs, as a script that stands alone |
"""
