-- What Hive 4.2 changed in the schema of 4.1, and the table that its model of the catalogue asks for.
CREATE TABLE "CATALOG_PARAMS" (
  "CTLG_ID" BIGINT NOT NULL, "PARAM_KEY" VARCHAR(767) NOT NULL, "PARAM_VALUE" VARCHAR(4000),
  PRIMARY KEY ("CTLG_ID", "PARAM_KEY")
);
UPDATE "VERSION" SET "SCHEMA_VERSION" = '4.2.0', "VERSION_COMMENT" = 'upgraded for tests';
