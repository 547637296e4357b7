// The catalog queries of introspection, for PostgreSQL 14 to 18. They contain no caller's input. Each runs in its own
// transaction, which sets search_path to pg_catalog, so that it calls no user-defined operator. Nothing that it changes
// outlives the transaction, because a pooler then gives the server connection to another client.

/** The first oid that initdb does not assign. Later objects are user-defined (FirstNormalObjectId). */
const firstUserOid = 16384

/**
 * Reads the facts about the server and the login. Sets the search_path that the login has without the service's
 * start-up options: that of ALTER ROLE or ALTER DATABASE, or the server's default. (A reset_val that begins with
 * pg_catalog is from the start-up options.) No other query may follow in the transaction. Before version 15, the column
 * datlocprovider does not exist. Read through JSON, it is then ''.
 */
export const server = `
SELECT current_setting('server_version_num'), current_database(), rolsuper, array_to_json(current_schemas(false)),
  (SELECT coalesce(to_json(d) ->> 'datlocprovider', '') = 'i' FROM pg_database d WHERE datname = current_database())
    OR EXISTS (SELECT FROM pg_range r JOIN pg_collation co ON co.oid = r.rngcollation WHERE co.collprovider = 'i')
    OR EXISTS (SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'c'
      JOIN pg_collation co ON co.oid = a.attcollation WHERE co.collprovider = 'i')
FROM pg_roles, (
  SELECT set_config('search_path', coalesce((
    SELECT substr(entry, length('search_path=') + 1)
    FROM pg_db_role_setting, unnest(setconfig) AS entry
    WHERE starts_with(entry, 'search_path=')
      AND (setrole = 0 OR setrole = (SELECT oid FROM pg_roles WHERE rolname = session_user))
      AND (setdatabase = 0 OR setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database()))
    ORDER BY setrole = 0, setdatabase = 0 LIMIT 1),
    CASE WHEN starts_with(reset_val, 'pg_catalog') THEN '"$user", public' ELSE reset_val END), true) AS path
  FROM pg_settings WHERE name = 'search_path' OFFSET 0) AS login
WHERE rolname = current_user AND login.path IS NOT NULL`

/** Returns SQL for the oid of an object's extension, or 0. */
export function extensionOf(catalog: string, oid: string): string {
  return `coalesce((SELECT refobjid FROM pg_depend WHERE classid = '${catalog}'::regclass AND objid = ${oid}
    AND refclassid = 'pg_extension'::regclass AND deptype = 'e'), 0)`
}

export const extensions = `
SELECT e.oid, e.extname, e.extversion, n.nspname
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace ORDER BY e.extname`

/**
 * Lists the functions and operators that each extension has in its schema. Also lists other objects of the same names
 * there, because a call could run these instead. The last column is the oid of the object's extension, or 0.
 */
export const extensionMembers = `
WITH member AS (
  SELECT e.oid AS extension, e.extnamespace AS space, 'function' AS kind, p.proname AS name
  FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid JOIN pg_proc p ON p.oid = d.objid
  WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
    AND p.pronamespace = e.extnamespace
  UNION SELECT e.oid, e.extnamespace, 'operator', o.oprname
  FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid JOIN pg_operator o ON o.oid = d.objid
  WHERE d.classid = 'pg_operator'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
    AND o.oprnamespace = e.extnamespace
)
SELECT extension, kind, name::text, extension FROM member
UNION SELECT m.extension, 'shadow', m.name::text, ${extensionOf('pg_proc', 'p.oid')}
FROM member m JOIN pg_proc p ON p.pronamespace = m.space AND p.proname = m.name
WHERE m.kind = 'function' AND ${extensionOf('pg_proc', 'p.oid')} <> m.extension
UNION SELECT m.extension, 'shadow', m.name::text, ${extensionOf('pg_operator', 'o.oid')}
FROM member m JOIN pg_operator o ON o.oprnamespace = m.space AND o.oprname = m.name
WHERE m.kind = 'operator' AND ${extensionOf('pg_operator', 'o.oid')} <> m.extension
ORDER BY 1, 2, 3`

/**
 * For each schema that contains an extension: the extensions of the objects in it (0 for none), and whether PUBLIC may
 * create objects there. Row types of tables and array types are left out, because an unqualified name cannot reach
 * them.
 */
export const extensionSchemas = `
WITH space AS (
  SELECT oid, nspname FROM pg_namespace
  WHERE oid IN (SELECT extnamespace FROM pg_extension) AND nspname <> 'pg_catalog' AND has_schema_privilege(oid, 'USAGE')
), member AS (
  SELECT p.pronamespace AS space, ${extensionOf('pg_proc', 'p.oid')} AS extension FROM pg_proc p
  WHERE p.pronamespace IN (SELECT oid FROM space)
  UNION SELECT o.oprnamespace, ${extensionOf('pg_operator', 'o.oid')} FROM pg_operator o
  WHERE o.oprnamespace IN (SELECT oid FROM space)
  UNION SELECT t.typnamespace, ${extensionOf('pg_type', 't.oid')} FROM pg_type t
  WHERE t.typnamespace IN (SELECT oid FROM space)
    AND t.typtype <> 'm' AND t.typsubscript <> 'array_subscript_handler'::regproc
    AND (t.typrelid = 0 OR EXISTS (SELECT FROM pg_class c WHERE c.oid = t.typrelid AND c.relkind = 'c'))
)
SELECT DISTINCT s.nspname, has_schema_privilege('public', s.oid, 'CREATE'), m.extension
FROM space s JOIN member m ON m.space = s.oid ORDER BY 1, 3`

/**
 * User-defined casts that run a user-defined function, or a built-in one that is not immutable. PostgreSQL applies
 * casts under every search_path. Casts from a range to its multirange, which PostgreSQL creates (deptype i), are left
 * out.
 */
export const userCasts = `
SELECT c.castsource, c.casttarget, format_type(c.castsource, NULL), format_type(c.casttarget, NULL),
  p.oid::regprocedure, ${extensionOf('pg_cast', 'c.oid')}, c.oid
FROM pg_cast c JOIN pg_proc p ON p.oid = c.castfunc
WHERE c.oid >= ${firstUserOid} AND (c.castfunc >= ${firstUserOid} OR p.provolatile <> 'i')
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_cast'::regclass AND d.objid = c.oid AND d.deptype = 'i')
ORDER BY c.oid`

/** User-defined functions and operators in pg_catalog, which a printed query could call instead of PostgreSQL's own. */
export const userBuiltIns = `
SELECT 'function', p.proname, p.oid::regprocedure::text, ${extensionOf('pg_proc', 'p.oid')} FROM pg_proc p
WHERE p.oid >= ${firstUserOid} AND p.pronamespace = 'pg_catalog'::regnamespace
UNION ALL SELECT 'operator', o.oprname, o.oid::regoperator::text, ${extensionOf('pg_operator', 'o.oid')} FROM pg_operator o
WHERE o.oid >= ${firstUserOid} AND o.oprnamespace = 'pg_catalog'::regnamespace ORDER BY 1, 2`

/** User-defined default operator classes of btree and hash. Sorting, grouping and DISTINCT use them. */
export const userOperatorClasses = `
SELECT o.opcintype, format_type(o.opcintype, NULL), quote_ident(n.nspname) || '.' || quote_ident(o.opcname), a.amname,
  ${extensionOf('pg_opclass', 'o.oid')}, o.oid
FROM pg_opclass o JOIN pg_am a ON a.oid = o.opcmethod JOIN pg_namespace n ON n.oid = o.opcnamespace
WHERE o.oid >= ${firstUserOid} AND o.opcdefault AND a.amname IN ('btree', 'hash') ORDER BY o.oid`

export const lastType = `SELECT max(oid) FROM pg_type`

/** User-defined types. Row types and arrays of them are left out unless a column or a domain uses them. */
export const userTypes = `
WITH used AS (
  SELECT a.atttypid AS oid FROM pg_attribute a
  WHERE a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= ${firstUserOid}
  UNION SELECT t.typbasetype FROM pg_type t WHERE t.typbasetype <> 0)
SELECT t.oid, n.nspname, t.typname, t.typtype, coalesce(b.oid, 0), bn.nspname, b.typname, t.typdelim, t.typnotnull,
  ${extensionOf('pg_type', 'coalesce(e.oid, t.oid)')}, c.relkind IS NOT NULL AND c.relkind <> 'c',
  format_type(t.oid, NULL), EXISTS (SELECT FROM pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c')
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typsubscript = 'array_subscript_handler'::regproc
LEFT JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE e.oid END
LEFT JOIN pg_namespace bn ON bn.oid = b.typnamespace
LEFT JOIN pg_class c ON c.oid = CASE WHEN e.oid IS NULL THEN t.typrelid ELSE e.typrelid END
WHERE (t.oid >= ${firstUserOid} OR n.nspname <> 'pg_catalog') AND n.nspname !~ '^pg_(toast|temp)'
  AND t.typtype <> 'p' AND t.typisdefined
  AND (c.oid IS NULL OR c.relkind = 'c' OR t.oid IN (SELECT oid FROM used) OR t.typarray IN (SELECT oid FROM used))
ORDER BY t.oid`

export const compositeAttributes = `
SELECT t.oid, a.attname, a.atttypid, n.nspname, at.typname
FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid AND c.relkind = 'c'
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type at ON at.oid = a.atttypid JOIN pg_namespace n ON n.oid = at.typnamespace
WHERE t.oid >= ${firstUserOid} ORDER BY t.oid, a.attnum`

/**
 * The user-defined functions of base types and ranges, and the operator classes of ranges. The last column is true for
 * compiled functions, which only a superuser can install. Other functions may read tables.
 */
export const typeSupport = `
SELECT t.oid, 'function ' || p.oid::regprocedure, ${extensionOf('pg_proc', 'p.oid')}, l.lanname IN ('internal', 'c')
FROM pg_type t LEFT JOIN pg_range r ON r.rngtypid = t.oid
JOIN pg_proc p ON p.oid = ANY (ARRAY[t.typinput, t.typoutput, t.typreceive, t.typsend, t.typmodin, t.typmodout,
  t.typsubscript, r.rngcanonical, r.rngsubdiff]::oid[])
JOIN pg_language l ON l.oid = p.prolang
WHERE t.oid >= ${firstUserOid} AND p.oid >= ${firstUserOid}
UNION ALL
SELECT r.rngtypid, 'operator class ' || quote_ident(n.nspname) || '.' || quote_ident(o.opcname),
  ${extensionOf('pg_opclass', 'o.oid')}, false
FROM pg_range r JOIN pg_opclass o ON o.oid = r.rngsubopc JOIN pg_namespace n ON n.oid = o.opcnamespace
WHERE o.oid >= ${firstUserOid} ORDER BY 1, 4, 2`

/**
 * The functions that the CHECK of a domain calls, except immutable built-in ones and those of operators. Also casts to
 * other domains, because such a cast runs the other domain's CHECK.
 */
export const checkCalls = `
SELECT DISTINCT k.contypid, p.oid::regprocedure::text, p.oid < ${firstUserOid}, p.proname,
  ${extensionOf('pg_proc', 'p.oid')}
FROM pg_constraint k
CROSS JOIN regexp_matches(k.conbin::text, ':(funcid|opfuncid|aggfnoid|winfnoid) ([1-9][0-9]*)', 'g') AS m(called)
JOIN pg_proc p ON p.oid = m.called[2]::oid
WHERE k.contypid <> 0 AND k.contype = 'c'
  AND NOT (p.oid < ${firstUserOid} AND (p.provolatile = 'i' OR m.called[1] = 'opfuncid'))
UNION ALL
SELECT k.contypid, 'another domain', false, '', 0 FROM pg_constraint k
WHERE k.contypid <> 0 AND k.contype = 'c' AND k.conbin::text ~ '[{]COERCETODOMAIN ' ORDER BY 1, 2`

/** The element type of each range, and the range of each multirange. */
export const ranges = `
SELECT rngtypid, rngsubtype FROM pg_range UNION ALL SELECT rngmultitypid, rngtypid FROM pg_range ORDER BY 1`

/** Returns SQL for the labels of every enum in order, at most `most` for each. */
export function enumLabels(most: number): string {
  return `
SELECT e.enumtypid, e.enumlabel FROM (
  SELECT enumtypid, enumlabel, enumsortorder, row_number() OVER (PARTITION BY enumtypid ORDER BY enumsortorder) AS place
  FROM pg_enum) e WHERE e.place <= ${most} ORDER BY e.enumtypid, e.enumsortorder`
}

/** Returns SQL for the valid CHECKs that concern one column each. Large ones are no short lists of labels. */
export function columnChecks(serverVersion: number): string {
  return `
SELECT k.conrelid, k.conkey[1], pg_get_expr(k.conbin, k.conrelid) FROM pg_constraint k
WHERE k.contype = 'c' AND k.conrelid <> 0 AND cardinality(k.conkey) = 1 AND k.convalidated
  AND octet_length(k.conbin::text) < 200000 ${serverVersion < 180000 ? '' : 'AND k.conenforced'} ORDER BY k.oid`
}

const readable = `n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' AND c.relpersistence <> 't'
  AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND has_schema_privilege(n.oid, 'USAGE')
  AND (has_table_privilege(c.oid, 'SELECT') OR has_any_column_privilege(c.oid, 'SELECT'))`

export const tables = `
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpages, c.reltuples, d.description,
  (SELECT e.extname FROM pg_extension e WHERE e.oid = ${extensionOf('pg_class', 'c.oid')}),
  (SELECT s.srvname FROM pg_foreign_table f JOIN pg_foreign_server s ON s.oid = f.ftserver WHERE f.ftrelid = c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
WHERE ${readable} ORDER BY n.nspname COLLATE "C", c.relname COLLATE "C"`

/** Returns the SQL condition that a column never contains null. Since version 18, NOT NULL may be unvalidated. */
function neverNull(serverVersion: number): string {
  if (serverVersion < 180000) return 'a.attnotnull'
  return `(a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint k
    WHERE k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey[1] = a.attnum AND NOT k.convalidated))`
}

export function columns(serverVersion: number): string {
  return `
SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, tn.nspname, t.typname,
  format_type(a.atttypid, a.atttypmod), ${neverNull(serverVersion)}, d.description,
  has_table_privilege(c.oid, 'SELECT') OR has_column_privilege(c.oid, a.attnum, 'SELECT'),
  (SELECT max(CASE WHEN co.collisdeterministic THEN 'icu' ELSE 'icu nondeterministic' END) FROM pg_collation co
  WHERE co.oid IN (a.attcollation, t.typcollation) AND co.collprovider = 'i'), a.attgenerated = 'v'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace tn ON tn.oid = t.typnamespace
LEFT JOIN pg_description d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = a.attnum
WHERE ${readable} ORDER BY a.attrelid, a.attnum`
}

/** The columns of each primary key in key order, without INCLUDE columns, and whether the key is not deferrable. */
export const primaryKeys = `
SELECT i.indrelid, i.indkey, i.indnkeyatts, i.indimmediate FROM pg_index i
WHERE i.indisprimary AND i.indisvalid AND i.indrelid >= ${firstUserOid}`

/**
 * Returns SQL for the foreign keys, those of one column first. If a key references a partitioned table, PostgreSQL adds
 * a key for each partition: these are left out. Keys that a partition copies from its parent are included.
 */
export function foreignKeys(serverVersion: number): string {
  return `
SELECT k.conrelid, k.conkey, k.confrelid, k.confkey, n.nspname, c.relname
FROM pg_constraint k JOIN pg_class c ON c.oid = k.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_constraint parent ON parent.oid = k.conparentid
WHERE k.contype = 'f' AND parent.conrelid IS DISTINCT FROM k.conrelid
${serverVersion < 180000 ? '' : 'AND k.conenforced'} ORDER BY cardinality(k.conkey), k.oid`
}

/** The names of columns that foreign keys reference, even in tables that the login may not read. */
export const foreignKeyTargets = `
SELECT DISTINCT a.attrelid, a.attnum, a.attname FROM pg_constraint k
JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = ANY (k.confkey) WHERE k.contype = 'f'`

/** The children of partitioned and inherited tables. Queries of a parent read even children that the login may not. */
export const children = `
SELECT i.inhparent, i.inhrelid, c.relpages, c.reltuples FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE c.relkind IN ('r', 'p', 'f')`
