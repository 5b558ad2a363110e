-- Version 4: standard terms for the table of discovered dynamic tools.
ALTER TABLE told_tools RENAME TO dynamic_tools;
ALTER TABLE dynamic_tools RENAME COLUMN told TO tools;
