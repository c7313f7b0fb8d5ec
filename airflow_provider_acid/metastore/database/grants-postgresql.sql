-- What airflow-provider-acid may do in the database of a Hive metastore on PostgreSQL, and nothing more.
-- Run it in that database as the owner of its tables, for instance:
--     createuser --pwprompt airflow_acid
--     psql --dbname=metastore --file=grants-postgresql.sql
-- Hive 3.1 names its transaction tables in lower case and Hive 4 in upper case; the block finds either.
DO $$
DECLARE
    item record;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO airflow_acid', current_schema());
    FOR item IN
        SELECT format('%I.%I', found.schemaname, found.tablename) AS name, wanted.rights
        FROM pg_tables AS found
        JOIN (VALUES
            ('COMPACTION_QUEUE', 'SELECT, UPDATE, DELETE'),
            ('COMPLETED_COMPACTIONS', 'SELECT, INSERT'),
            ('COMPLETED_TXN_COMPONENTS', 'SELECT, DELETE'),
            ('TXN_COMPONENTS', 'SELECT, DELETE'),
            ('TXNS', 'SELECT'),
            ('TXN_TO_WRITE_ID', 'SELECT'),
            -- Where tables and partitions lie: no two may share a directory.
            ('DBS', 'SELECT'),
            ('TBLS', 'SELECT'),
            ('PARTITIONS', 'SELECT'),
            ('SDS', 'SELECT'),
            -- UPDATE is for SELECT ... FOR UPDATE alone: Hive's mutexes are rows of this table.
            ('AUX_TABLE', 'SELECT, UPDATE')
        ) AS wanted (table_name, rights) ON upper(found.tablename) = wanted.table_name
        WHERE found.schemaname = current_schema()
    LOOP
        EXECUTE format('GRANT %s ON %s TO airflow_acid', item.rights, item.name);
    END LOOP;
END
$$;
