-- A mixed script: inserts, indexes, joins, window functions, full-text search, deletes.
CREATE TABLE item (id INTEGER PRIMARY KEY, kind INTEGER, name TEXT, price REAL);
CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER REFERENCES item, amount INTEGER, day TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO item SELECT i, i % 37, 'item ' || (i * 7919 % 10007), (i % 997) * 0.25 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO sale SELECT i, 1 + i * 31 % 20000, i % 9, date('2020-01-01', '+' || (i % 700) || ' days') FROM n;
CREATE INDEX sale_item ON sale (item);
CREATE INDEX item_kind ON item (kind, price);
SELECT kind, count(*), round(sum(price * amount), 2) FROM item JOIN sale ON sale.item = item.id
GROUP BY kind ORDER BY 3 DESC LIMIT 5;
SELECT day, sum(amount) OVER (ORDER BY day ROWS 6 PRECEDING) FROM sale ORDER BY id LIMIT 3 OFFSET 59000;
CREATE VIRTUAL TABLE note USING fts5(body);
INSERT INTO note SELECT name || ' sold ' || price || ' of kind ' || kind FROM item WHERE id % 4 = 0;
SELECT count(*) FROM note WHERE note MATCH 'sold AND item';
UPDATE item SET price = price * 1.1 WHERE kind IN (SELECT kind FROM item GROUP BY kind HAVING avg(price) > 124);
DELETE FROM sale WHERE id % 3 = 0;
SELECT count(*), sum(amount) FROM sale WHERE item IN (SELECT id FROM item WHERE name LIKE '%9%');
PRAGMA integrity_check;
