// Implicit objects are objects that a query can run without naming them: casts, operator classes, overloads of allowed
// functions and operators, and CHECKs of domains. Introspection judges them (trusted-extensions.ts) and stores a digest
// of them. Before a query, the database computes the digest again, to check that nothing has changed.
import { randomBytes } from 'node:crypto'
import type { ImplicitObjects } from '../captured-facts.ts'
import { literal } from '../quote.ts'
import { extensionOf, userCasts, userOperatorClasses } from './catalog-queries.ts'
import { KNOWN_EXTENSIONS } from './trusted-extensions.ts'

export type Scope = Omit<ImplicitObjects, 'digest'>

/**
 * Returns the statement that computes the digest. It reads only user-defined objects, and those of the extensions in
 * KNOWN_EXTENSIONS that were installed at introspection, so it takes a few milliseconds. It reads oids and stored
 * definitions, so neither the search_path nor the rights of the login change the digest.
 */
export function digestSql({ extensions, schemas, typesUpTo, judged }: Scope): string {
  const known = `(SELECT oid FROM pg_extension WHERE extname = ANY (${names([...KNOWN_EXTENSIONS])}))`
  const later = `(SELECT oid FROM pg_extension WHERE extname = ANY (${names([...KNOWN_EXTENSIONS])})
    AND extname <> ALL (${names(extensions)}))`
  const owners = `(SELECT oid FROM pg_extension WHERE extname = ANY (${names(extensions)}))`
  const paths = `(SELECT oid FROM pg_namespace WHERE nspname = ANY (${names(schemas)}))`
  const seen = `'{${judged.join(',')}}'::oid[]`
  const member = (kind: 'pg_proc' | 'pg_operator', space: string, name: string): string => `
    SELECT m.${space}, m.${name} FROM pg_depend d JOIN ${kind} m ON m.oid = d.objid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid IN ${owners}
      AND d.classid = '${kind}'::regclass AND d.deptype = 'e'`
  return `
SELECT md5(coalesce(string_agg(part, '|' ORDER BY part COLLATE "C"), '')) FROM (
  SELECT concat_ws(' ', 'cast', c.oid)
  FROM (${userCasts}) AS c(source, target, source_name, target_name, function, extension, oid)
  WHERE c.extension NOT IN ${known} AND c.oid <> ALL (${seen})
  UNION ALL SELECT concat_ws(' ', 'class', o.oid)
  FROM (${userOperatorClasses}) AS o(type, type_name, name, method, extension, oid)
  WHERE o.extension NOT IN ${known} AND o.oid <> ALL (${seen})
  UNION ALL SELECT concat_ws(' ', 'function', p.oid, p.prolang, p.prosrc, p.probin, p.proconfig)
  FROM pg_proc p WHERE (p.pronamespace, p.proname) IN (${member('pg_proc', 'pronamespace', 'proname')})
    AND ${extensionOf('pg_proc', 'p.oid')} NOT IN ${later}
  UNION ALL SELECT concat_ws(' ', 'built in', p.oid, p.prolang, p.prosrc, p.probin, p.proconfig)
  FROM pg_proc p WHERE p.oid >= 16384 AND p.pronamespace = 'pg_catalog'::regnamespace
  UNION ALL SELECT concat_ws(' ', 'operator', o.oid, o.oprcode::oid)
  FROM pg_operator o WHERE ((o.oprnamespace, o.oprname) IN (${member('pg_operator', 'oprnamespace', 'oprname')})
    OR o.oprnamespace IN ${paths} OR o.oid >= 16384 AND o.oprnamespace = 'pg_catalog'::regnamespace)
    AND ${extensionOf('pg_operator', 'o.oid')} NOT IN ${later}
  UNION ALL SELECT concat_ws(' ', 'check', k.oid)
  FROM pg_constraint k WHERE k.contypid BETWEEN 16384 AND ${typesUpTo}
) AS parts(part)`
}

/** The error text for changed objects. It is random, so that a caller's query cannot fail with the same text. */
const MARK = `vitrine-${randomBytes(8).toString('hex')}`

const statements = new WeakMap<ImplicitObjects, string>()

/** Returns a statement that fails if an implicit object has changed, so that the query after it does not run. */
export function implicitCheckSql(objects: ImplicitObjects): string {
  const known = statements.get(objects)
  if (known !== undefined) return known
  const sql = `
SELECT CASE WHEN found.digest = ${literal(objects.digest)} THEN 0 ELSE CAST(concat('${MARK} ', found.digest) AS int4) END
FROM (${digestSql(objects)}) AS found(digest)`
  statements.set(objects, sql)
  return sql
}

/** Returns whether the message is from a failed statement of implicitCheckSql(). */
export function isImplicitChange(message: string): boolean {
  return message.includes(MARK)
}

function names(list: readonly string[]): string {
  return list.length === 0 ? `'{}'::name[]` : `ARRAY[${list.map(literal).join(', ')}]::name[]`
}
