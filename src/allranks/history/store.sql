-- The tables of a workspace's store. Times are seconds since the epoch.
CREATE TABLE run (id TEXT PRIMARY KEY, created REAL NOT NULL, record TEXT NOT NULL, plan TEXT NOT NULL) STRICT;
CREATE TABLE node (
    run TEXT NOT NULL REFERENCES run, position INTEGER NOT NULL, path TEXT NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (run, path)) STRICT;
-- The decision of a control node, written before it takes effect.
CREATE TABLE decision (
    run TEXT NOT NULL REFERENCES run, path TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (run, path, key)) STRICT;
CREATE TABLE point (
    run TEXT NOT NULL, node TEXT NOT NULL, metric TEXT NOT NULL, x INTEGER NOT NULL, value REAL, time REAL NOT NULL)
    STRICT;
CREATE INDEX point_of_node ON point (run, node);
CREATE TABLE result (key TEXT PRIMARY KEY, run TEXT NOT NULL, node TEXT NOT NULL) STRICT;
-- Nodes that a user cancels during the run.
CREATE TABLE cancellation (run TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (run, path)) STRICT;
CREATE TABLE asset (kind TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, path TEXT NOT NULL,
    created REAL NOT NULL, PRIMARY KEY (kind, name, version)) STRICT;
-- Resource usage. ranks: a JSON list of [rank, CPU seconds, bytes of memory], with GPUs also percent of use and bytes.
CREATE TABLE usage (
    run TEXT NOT NULL, node TEXT NOT NULL, instance INTEGER NOT NULL, time REAL NOT NULL, ranks TEXT NOT NULL) STRICT;
CREATE INDEX usage_of_node ON usage (run, node);
