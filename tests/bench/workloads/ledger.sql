-- A database at work in memory: lookups, updates, text functions, a recursive query.
CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT, balance INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
INSERT INTO account SELECT i, 'owner ' || (i * 7919 % 5003), i % 977 FROM n;
CREATE INDEX account_owner ON account (owner);
UPDATE account SET balance = balance + length(owner) WHERE id % 3 = 0;
SELECT sum(b.balance) FROM account a JOIN account b ON b.owner = a.owner WHERE a.id % 50 = 0;
SELECT substr(owner, 7, 2), avg(balance), max(upper(owner)) FROM account GROUP BY 1 ORDER BY 2 LIMIT 3;
WITH RECURSIVE f(i, a, b) AS (SELECT 1, 0, 1 UNION ALL SELECT i + 1, b, (a + b) % 1000003 FROM f
    WHERE i < 1500000)
SELECT max(a), count(*) FROM f;
