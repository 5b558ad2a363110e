-- Version 5: descriptions of methods. Packages without a content hash are read from their files again.
ALTER TABLE methods ADD COLUMN description TEXT NOT NULL DEFAULT '';
UPDATE packages SET content = '';
