-- Credentials of machines. docs/decisions/0020-api-keys.md says why it is so.

CREATE TABLE pawl.api_key (
	id           text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9A-Za-z]{12}$'),
	tenant       text COLLATE "C" NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 64),
	name         text COLLATE "C" NOT NULL CHECK (octet_length(name) BETWEEN 1 AND 100),
	actor        text NOT NULL CHECK (octet_length(actor) BETWEEN 1 AND 255),
	roles        text[] NOT NULL CHECK (cardinality(roles) <= 64 AND array_position(roles, NULL) IS NULL),
	grants       text[] NOT NULL CHECK (cardinality(grants) BETWEEN 1 AND 64 AND array_position(grants, NULL) IS NULL),
	hash         bytea NOT NULL CHECK (octet_length(hash) = 32),
	former_hash  bytea CHECK (octet_length(former_hash) = 32),
	former_ends  timestamptz,
	created_at   timestamptz NOT NULL,
	created_by   text NOT NULL CHECK (octet_length(created_by) BETWEEN 1 AND 1024),
	rotated_at   timestamptz,
	rotated_by   text CHECK (octet_length(rotated_by) BETWEEN 1 AND 1024),
	expires_at   timestamptz,
	revoked_at   timestamptz,
	revoked_by   text CHECK (octet_length(revoked_by) BETWEEN 1 AND 1024),
	last_used_at timestamptz CONSTRAINT api_key_minute CHECK (extract(second FROM last_used_at) = 0),
	revision     bigint NOT NULL DEFAULT 0 CHECK (revision >= 0),
	CONSTRAINT api_key_former CHECK ((former_hash IS NULL) = (former_ends IS NULL)),
	CONSTRAINT api_key_rotated CHECK ((rotated_at IS NULL) = (rotated_by IS NULL)),
	CONSTRAINT api_key_revoked CHECK ((revoked_at IS NULL) = (revoked_by IS NULL)),
	CONSTRAINT api_key_over CHECK (revoked_at IS NULL OR former_hash IS NULL),
	CONSTRAINT api_key_lasts CHECK (expires_at > created_at)
);
COMMENT ON TABLE pawl.api_key IS
	'API keys: who has the text of one, and what he may. One is revoked, not deleted: nodes do not notice a row that is gone.';
COMMENT ON COLUMN pawl.api_key.id IS 'It is in the text of the key and in audit rows, and no secret. The tenant is known by it, so it is unique among all of them.';
COMMENT ON COLUMN pawl.api_key.tenant IS 'Whose things the key is for.';
COMMENT ON COLUMN pawl.api_key.name IS 'What people call it. A tenant has one key of a name that is not revoked.';
COMMENT ON COLUMN pawl.api_key.actor IS 'Whose commands those of the key are.';
COMMENT ON COLUMN pawl.api_key.roles IS 'The roles that workflows ask for; * is every one.';
COMMENT ON COLUMN pawl.api_key.grants IS 'What the key may do.';
COMMENT ON COLUMN pawl.api_key.hash IS 'SHA-256 of the secret in the text of the key. The text itself is nowhere.';
COMMENT ON COLUMN pawl.api_key.former_hash IS 'The same of the text before the last rotation.';
COMMENT ON COLUMN pawl.api_key.former_ends IS 'Until when that one is good too.';
COMMENT ON COLUMN pawl.api_key.created_at IS 'When it was made.';
COMMENT ON COLUMN pawl.api_key.created_by IS 'Who has made it, and how that was known.';
COMMENT ON COLUMN pawl.api_key.rotated_at IS 'When its text was made; NULL: with the key.';
COMMENT ON COLUMN pawl.api_key.rotated_by IS 'Who was given that text, and how he was known.';
COMMENT ON COLUMN pawl.api_key.expires_at IS 'When it ends; NULL: it does not by itself.';
COMMENT ON COLUMN pawl.api_key.revoked_at IS 'Since when it is refused; NULL: it is not.';
COMMENT ON COLUMN pawl.api_key.revoked_by IS 'Who has revoked it, and how that was known.';
COMMENT ON COLUMN pawl.api_key.last_used_at IS 'When it was used last, to the minute; NULL: never. It is noted up to a minute later.';
COMMENT ON COLUMN pawl.api_key.revision IS
	'Counts the rotations and revocations of all keys, in the order of their commits; 0: it was neither. Nodes look for what is new by it.';

CREATE UNIQUE INDEX api_key_name ON pawl.api_key (tenant, name) WHERE revoked_at IS NULL;
CREATE INDEX api_key_list ON pawl.api_key (tenant, created_at, id);
-- What has changed since a node has looked.
CREATE INDEX api_key_changed ON pawl.api_key (revision);
