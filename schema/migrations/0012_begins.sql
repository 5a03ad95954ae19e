-- needs: 8

ALTER TABLE pawl.node ADD COLUMN begins text[] COLLATE "C";
COMMENT ON COLUMN pawl.node.begins IS
	'The workflows, each with the version behind a space that new instances begin with on this node. Empty while that changes. NULL: the program does not report it.';
