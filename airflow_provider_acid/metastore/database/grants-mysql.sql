-- What airflow-provider-acid may do in the database of a Hive metastore on MySQL or MariaDB, and nothing more.
-- Run it in that database as an administrator, for instance:
--     mysql --execute="CREATE USER airflow_acid@'%' IDENTIFIED BY '...'"
--     mysql --database=metastore < grants-mysql.sql
GRANT SELECT, UPDATE, DELETE ON COMPACTION_QUEUE TO airflow_acid@'%';
GRANT SELECT, INSERT ON COMPLETED_COMPACTIONS TO airflow_acid@'%';
GRANT SELECT, DELETE ON COMPLETED_TXN_COMPONENTS TO airflow_acid@'%';
GRANT SELECT, DELETE ON TXN_COMPONENTS TO airflow_acid@'%';
GRANT SELECT ON TXNS TO airflow_acid@'%';
GRANT SELECT ON TXN_TO_WRITE_ID TO airflow_acid@'%';
-- Where tables and partitions lie: no two may share a directory.
GRANT SELECT ON DBS TO airflow_acid@'%';
GRANT SELECT ON TBLS TO airflow_acid@'%';
GRANT SELECT ON PARTITIONS TO airflow_acid@'%';
GRANT SELECT ON SDS TO airflow_acid@'%';
-- UPDATE is for SELECT ... FOR UPDATE alone: Hive's mutexes are rows of this table.
GRANT SELECT, UPDATE ON AUX_TABLE TO airflow_acid@'%';
