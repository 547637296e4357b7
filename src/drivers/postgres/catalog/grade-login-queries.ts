// The catalog queries of the connection test: the attributes and roles of the login, and rights that a reader does not
// need.

export const login = `
SELECT rolname, rolsuper, rolbypassrls,
  (SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()),
  coalesce(host(inet_server_addr()) IN ('127.0.0.1', '::1'), true),
  current_setting('temp_file_limit'), has_database_privilege(current_database(), 'CREATE')
FROM pg_roles WHERE rolname = current_user`

/** Powerful roles that the login has or could assume. */
export const roles = `
SELECT rolname FROM pg_roles
WHERE rolname <> current_user AND pg_has_role(oid, 'MEMBER') AND (rolsuper OR rolbypassrls OR rolname IN (
  'pg_read_all_data', 'pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files',
  'pg_execute_server_program', 'pg_signal_backend', 'pg_checkpoint', 'pg_maintain', 'pg_create_subscription',
  'pg_database_owner', 'rds_superuser', 'cloudsqlsuperuser', 'azure_pg_admin'))
ORDER BY rolname`

const relation = `quote_ident(n.nspname) || '.' || quote_ident(c.relname)`
const ordinary = `n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`

/** The relations that the login could change if the session were not read-only. */
export const writable = `
SELECT ${relation} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE ${ordinary} AND (has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
  OR has_any_column_privilege(c.oid, 'INSERT, UPDATE')) ORDER BY 1`

/**
 * The relations that the login or one of its roles owns. An owner may read all of them and grant rights on them. A
 * superuser has every role, so only relations that the superuser owns directly count.
 */
export const owned = `
SELECT ${relation} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_roles me ON me.rolname = current_user
WHERE ${ordinary} AND (c.relowner = me.oid OR NOT me.rolsuper AND pg_has_role(c.relowner, 'MEMBER')) ORDER BY 1`

/** Whether the login and PUBLIC may create objects in each schema. */
export const creatable = `
SELECT nspname, has_schema_privilege(oid, 'CREATE'), has_schema_privilege('public', oid, 'CREATE')
FROM pg_namespace WHERE nspname <> 'information_schema' AND nspname !~ '^pg_' ORDER BY nspname`

/** The columns that the login may read, without relations of extensions, which PUBLIC can usually read. */
export const readableColumns = `
SELECT n.nspname, c.relname, a.attname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE ${ordinary} AND has_schema_privilege(n.oid, 'USAGE')
  AND (has_table_privilege(c.oid, 'SELECT') OR has_column_privilege(c.oid, a.attnum, 'SELECT'))
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
    AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e')`
