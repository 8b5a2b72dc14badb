-- Objective-C: what the names of methods say, taken apart.

CREATE VIEW methods AS -- functions that are methods: -[Class selector], +[Class(Category) selector],
                       -- -[Receiver:Class(Category) selector]
SELECT function_id, name, kind,
       CASE WHEN colon > 0 THEN substr(class_part, 1, colon - 1) END AS receiver,
       CASE WHEN paren > 0 THEN substr(class_part, colon + 1, paren - colon - 1)
            ELSE substr(class_part, colon + 1) END AS class,
       CASE WHEN paren > 0 THEN rtrim(substr(class_part, paren + 1), ')') END AS category,
       selector
FROM (SELECT function_id, name, kind, class_part, selector,
             instr(class_part, ':') AS colon, instr(class_part, '(') AS paren
      FROM (SELECT function_id, name,
                   CASE substr(name, 1, 1) WHEN '+' THEN 'class' ELSE 'instance' END AS kind,
                   substr(name, 3, instr(name, ' ') - 3) AS class_part,
                   substr(name, instr(name, ' ') + 1, length(name) - instr(name, ' ') - 1) AS selector
            FROM functions
            WHERE (name GLOB '-[[]* *]' OR name GLOB '+[[]* *]')));
