#!/usr/bin/env python3
"""The README of the schema is generated from the comments of the migrations. Missing comments are found."""
import sys
import unittest

sys.dont_write_bytecode = True
import schema_readme

FIRST = """-- Version 1.

-- Rooms of
-- houses.
CREATE TABLE rooms (
    -- The key.
    room_id INTEGER PRIMARY KEY,
    -- Low | high,
    -- in metres.
    height REAL NOT NULL,
    UNIQUE (height)
) STRICT;
-- An index.
CREATE INDEX rooms_by_height ON rooms (height);

-- A view: heights.
--
-- - height REAL: The
--   height.
CREATE VIEW heights AS SELECT height FROM rooms;
"""
SECOND = """-- The colour.
ALTER TABLE rooms ADD COLUMN colour TEXT;
"""
HEAD = "| Column | Type | Meaning |\n|---|---|---|\n"
ROOMS = (f"## rooms\n\nRooms of houses.\n\n{HEAD}| `room_id` | INTEGER | The key. |\n"
         "| `height` | REAL | Low &#124; high, in metres. |\n")
COLOUR = "| `colour` | TEXT | The colour. |\n"
HEIGHTS = f"## heights\n\nA view: heights.\n\n{HEAD}| `height` | REAL | The height. |\n"


class Readme(unittest.TestCase):
    def test_generated_sections_keep_text_written_by_hand(self):
        readme = f"# Schema\n\n## rooms\n\nOld.\n\n{HEAD}| old |\n\nAn example.\n\n## Recipes\n\nNone.\n"
        made, problems = schema_readme.generate(readme, [FIRST, SECOND])
        self.assertEqual([], problems)
        self.assertEqual(f"# Schema\n\n{ROOMS}{COLOUR}\nAn example.\n\n{HEIGHTS}\n## Recipes\n\nNone.\n", made)
        self.assertEqual((made, []), schema_readme.generate(made, [FIRST, SECOND]))

    def count(self, *texts):
        return len(schema_readme.generate("", texts)[1])

    def test_tables_and_columns_without_a_comment_are_found(self):
        self.assertEqual(0, self.count(FIRST))
        self.assertEqual(1, self.count(FIRST.replace("    -- The key.\n", "")))
        self.assertEqual(1, self.count(FIRST.replace("-- Rooms of\n-- houses.\n", "")))
        self.assertEqual(1, self.count(FIRST, "ALTER TABLE rooms ADD COLUMN colour TEXT;\n"))
        self.assertEqual(2, self.count(FIRST.replace("- height REAL", "- weight REAL")))


if __name__ == "__main__":
    unittest.main()
