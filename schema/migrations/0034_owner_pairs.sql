-- Sojourn store, version 34: which event of a freed object's history has no partner.

ALTER TABLE zombie_events ADD COLUMN partner INTEGER; -- the event that takes back what this one gave, or the reverse; NULL: none does
