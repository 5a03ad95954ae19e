-- Attributes are texts by name. The engine reads no others, and a SQL caller who
-- stored some would keep everybody from listing instances. What is there already
-- is not looked at, so that nobody has to wait.
ALTER TABLE pawl.instance ADD CONSTRAINT instance_attributes_check
	CHECK (jsonb_typeof(attributes) = 'object' AND NOT attributes @? 'strict $.* ? (@.type() != "string")') NOT VALID;
