-- Statements of http/route_zombies.c.

-- name: zombies_coverage
{zombie_coverage_sums}
