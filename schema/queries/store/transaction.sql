-- Begins and ends transactions of the writer.

-- name: begin
BEGIN IMMEDIATE

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: savepoint
SAVEPOINT frame

-- name: release
RELEASE frame

-- name: rollback_to
ROLLBACK TO frame
