// Warns about views. A view usually runs with the rights of its owner, and the guard does not check its definition. The
// warnings name functions that may write or read other data, foreign tables, and tables or rows that the login itself
// may not read.
import { grouped, isTrueAt, numberAt, textAt, type Row } from './run-catalog-query.ts'

/** Selects the owner and name of each view, and whether it runs with the rights of the caller (since PostgreSQL 15). */
export const views = `
SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), pg_get_userbyid(c.relowner),
  EXISTS (SELECT FROM pg_options_to_table(c.reloptions)
    WHERE option_name = 'security_invoker' AND option_value IN ('true', 'on', '1', 'yes'))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v' AND c.oid >= 16384`

/** Selects the relations that each view reads, whether the login may read them, and whether they have row policies. */
export const viewRelations = `
SELECT DISTINCT r.ev_class, c.oid, c.relkind, quote_ident(n.nspname) || '.' || quote_ident(c.relname),
  has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'), c.relrowsecurity
FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v' AND v.oid >= 16384
JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
  AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class
JOIN pg_class c ON c.oid = d.refobjid AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY 1, 4`

// The functions come from the stored tree of the view, because pg_depend does not list built-in ones. For an aggregate,
// the functions that it calls are included.
const harmless = `'timeofday', 'clock_timestamp', 'random', 'random_normal', 'gen_random_uuid', 'uuidv4', 'uuidv7'`
export const viewFunctions = `
WITH called AS (
  SELECT DISTINCT r.ev_class, (regexp_matches(r.ev_action::text,
    ':(?:funcid|opfuncid|aggfnoid|winfnoid) ([1-9][0-9]*)', 'g'))[1]::oid AS function
  FROM pg_rewrite r JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v' AND v.oid >= 16384
), made_of AS (
  SELECT ev_class, function FROM called
  UNION SELECT c.ev_class, part FROM called c JOIN pg_aggregate a ON a.aggfnoid = c.function,
    unnest(ARRAY[a.aggtransfn, a.aggfinalfn]::oid[]) AS part
)
SELECT m.ev_class, quote_ident(n.nspname) || '.' || quote_ident(p.proname), p.prosecdef
FROM made_of m JOIN pg_proc p ON p.oid = m.function JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prosecdef OR (p.provolatile = 'v' AND (p.oid >= 16384 OR p.proname NOT IN (${harmless})))
ORDER BY 1, 2`

export interface ViewRows {
  readonly views: readonly Row[]
  readonly relations: readonly Row[]
  readonly functions: readonly Row[]
}

/** Returns the warnings by the oid of the view. A view also gets the warnings of the views that it reads. */
export function viewWarnings(rows: ViewRows): ReadonlyMap<number, readonly string[]> {
  const relations = grouped(
    rows.relations,
    (row) => numberAt(row, 0),
    (row) => row,
  )
  const functions = grouped(
    rows.functions,
    (row) => numberAt(row, 0),
    (row) => row,
  )
  const views = new Map(rows.views.map((row) => [numberAt(row, 0), row]))
  const walk = (oid: number, found: Set<string>, seen: Set<number>): Set<string> => {
    const view = views.get(oid)
    if (view === undefined || seen.has(oid)) return found
    seen.add(oid)
    for (const row of functions.get(oid) ?? []) found.add(functionWarning(row))
    for (const row of relations.get(oid) ?? []) {
      for (const warning of relationWarnings(row, view)) found.add(warning)
      walk(numberAt(row, 1), found, seen)
    }
    return found
  }
  return new Map([...views.keys()].map((oid) => [oid, [...walk(oid, new Set(), new Set())]]))
}

function functionWarning(row: Row): string {
  const name = textAt(row, 1)
  return isTrueAt(row, 2)
    ? `It calls ${name}(), a SECURITY DEFINER function: that runs with the rights of its owner.`
    : `It calls ${name}(), a volatile function: reading the view may have effects or read elsewhere.`
}

function relationWarnings(row: Row, view: Row): string[] {
  const [kind, name] = [textAt(row, 2), textAt(row, 3)]
  const [view_, owner] = [textAt(view, 1), textAt(view, 2)]
  const warnings = kind === 'f' ? [`It reads the foreign table ${name}, on another server.`] : []
  if (isTrueAt(view, 3)) return warnings
  if (kind !== 'v' && !isTrueAt(row, 4)) {
    warnings.push(`${view_} reads ${name} with the rights of its owner ${owner}; this login may not read all of it.`)
  }
  if (isTrueAt(row, 5))
    warnings.push(`The row policies of ${name} apply to the owner ${owner} of ${view_}, not to this login.`)
  return warnings
}
