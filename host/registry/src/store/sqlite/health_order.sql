-- The order of tools by health: a tool whose component does not load is broken, whatever its last execution.
DROP INDEX tools_by_health;
CREATE INDEX tools_by_health ON tools (CASE WHEN import_health = 'broken' THEN 'broken' ELSE execution_health END);
