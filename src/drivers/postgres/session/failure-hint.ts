// Hints for database errors, by SQLSTATE. The database's own HINT is not used, because it may name hidden objects.

/**
 * Hints for those errors of class 42 whose message may be shown. Other messages of class 42 may name hidden objects,
 * such as a role, or a table behind a view.
 */
const SHOWN_CODES: Readonly<Record<string, string>> = {
  '42601':
    'Select the same number of columns on both sides of UNION. A subquery used as a value must return one column.',
  '42611': 'Correct the column definition.',
  '42702': 'Qualify the column: table.column.',
  '42712': 'Give each table in FROM its own alias.',
  '42725': 'Cast each argument to a type: CAST(x AS type).',
  '42803': 'Add the column to GROUP BY, or aggregate it, for example max(column).',
  '42804': 'Convert one side, so that both have the same type: CAST(x AS type).',
  '42809': 'Add OVER (…) to a window function. Use OVER only with window functions and aggregates.',
  '42846': 'Convert through text: CAST(CAST(x AS text) AS type).',
  '42883': 'Cast the arguments to types that the function or operator accepts: CAST(x AS type).',
  '42P02': 'Send a value for each parameter in the query.',
  '42P08': 'Cast the parameter to a type: CAST($1 AS type).',
  '42P10':
    'Use a column name or position from the select list. With SELECT DISTINCT, every ORDER BY expression must be in the select list.',
  '42P18': 'Cast the value to a type: CAST(x AS type).',
  '42P19': 'Refer to the recursive query once, in the second arm of UNION, outside outer joins and sub-selects.',
  '42P20': 'Correct the window: one ORDER BY, a frame that starts before it ends, no window function in WHERE.',
  '42P22': 'Name a collation: x COLLATE "C".',
}

/** Hints for other codes. */
const OTHER: Readonly<Record<string, string>> = {
  '0A000': 'Move set-returning functions to FROM, and leave out features that this server does not have.',
  '21000': 'Add LIMIT 1 to the sub-select, or use an aggregate in it.',
  '22003': 'Convert to a larger type first, for example numeric.',
  '22007': "Write dates as 'YYYY-MM-DD', or convert the string with to_date(text, format).",
  '22008': 'Write an existing date or time; to_date(text, format) reads other orders of day and month.',
  '22012': 'Divide by NULLIF(x, 0).',
  '2201B': 'Correct the pattern. PostgreSQL supports \\d, \\w, and \\m for the start of a word.',
  '2201E': 'Use NULLIF(x, 0), or filter with WHERE x > 0.',
  '22P02': 'Filter out values that cannot be cast, or compare them as text.',
  '25006': 'Send a query that only reads.',
  '40001': 'Send the query again.',
  '40P01': 'Send the query again.',
  '42501': 'Ask an administrator to grant the login SELECT on the exposed tables and columns.',
  '42704': 'Leave the name out, or use a built-in one.',
  '42P21': 'Name a collation: x COLLATE "C".',
  '55P03': 'Send the query again later.',
  '57014': 'Send the query again, or read fewer rows.',
}

const OF_CLASS: Readonly<Record<string, string>> = {
  '22': 'Filter out values that do not fit, with WHERE or CASE, before you use them.',
  '42': 'Rewrite the query, for example in smaller parts, to find what the database refuses.',
  '53': 'Read or sort fewer rows: add conditions to WHERE.',
  '54': 'Split or simplify the query. Make its values shorter: use smaller counts in repeat, lpad and rpad.',
}

const GENERAL = 'Try a simpler query. If it fails too, tell an administrator.'

/** Returns whether the database's message may be shown. */
export function mayShowMessage(code: string): boolean {
  return SHOWN_CODES[code] !== undefined || /^5[34]/.test(code)
}

/** Returns the hint for an error. Only the operands in `message` are read. */
export function adviceFor(code: string, message: string): string {
  if (code === '42883' || code === '42725') {
    const advice = OPERANDS.find(([pattern]) => pattern.test(message))
    if (advice !== undefined) return advice[1]
  }
  return SHOWN_CODES[code] ?? OTHER[code] ?? OF_CLASS[code.slice(0, 2)] ?? GENERAL
}

/** Returns the hint for a query that exceeded a bound in the printed text (exceeded-bound-marker.ts). */
export function adviceForBound(what: string): string {
  if (what === 'LIKE') return LIKE_HINT
  if (what === 'repeat' || what === 'lpad' || what === 'rpad') return COUNT_HINT
  if (what === 'normalize' || what === 'is_normalized') return 'Shorten the string first: left(x, 1000).'
  if (what === 'nondeterministic') return LOOSE_HINT
  if (what === 'comparison') return 'Compare rows instead: use a join, EXISTS, or IN with a sub-query.'
  if (what === 'jsonpath') return PATH_HINT
  if (what === 'json_table') return ITEMS_HINT
  if (what === 'marks') return MARKS_HINT
  if (what === 'pattern') return PATTERN_HINT
  if (what === 'exponent') return EXPONENT_HINT
  if (COLLECTS.test(what)) return COLLECTED_HINT
  if (what === 'stored_value') return STORED_HINT
  if (what === 'collected_value') return VALUE_HINT
  if (what === 'lquery') return 'Use a shorter pattern: a text that is cast to lquery can have 4096 bytes.'
  if (what === 'ts_headline')
    return 'Search for fewer words, or make the headline of a shorter text: left(x, 10000). Leave out phrases, or use fewer fragments.'
  if (what === 'tsquery') return 'Use a shorter search: a text that is cast to tsquery can have 32768 bytes.'
  if (what.startsWith('ts_rank')) return 'Search for fewer words, or rank only the first rows of a search.'
  return 'The cost is the length of the string times the length of the text to find in it. Shorten one of them: left(x, 10000).'
}

/** The names of the bounds in collected-rows.ts. */
const COLLECTS = /_agg$|^(?:array|except|in|intersect|json_array|json_arrayagg|st_collect|st_makeline|union)$/
const COLLECTED_HINT =
  'The rows that a query collects must fit into memory. Collect fewer or shorter values, or read the rows without collecting them. Write UNION ALL in a recursive query, and NOT EXISTS instead of NOT IN and EXCEPT.'
const STORED_HINT =
  'The query computes many values from one row, so the stored values that it reads must be shorter. Compute fewer columns at a time, or leave the long values out.'
const VALUE_HINT =
  'A value that the query collected from rows is too long for the function, operator or cast that takes it. Collect fewer rows into one value: add WHERE, GROUP BY or LIMIT, or read the rows without collecting them.'
const LIKE_HINT =
  'Write a shorter pattern, or shorten the string: left(x, 10000) LIKE pattern. Instead of LIKE ANY (SELECT …) write EXISTS (SELECT … WHERE x LIKE pattern).'
const PATTERN_HINT =
  'A stored text may have 4096 bytes as a regular expression. One that the query makes may have few letters and few counts such as {1,9}, and none that are nested: write it as a constant or a parameter.'
const EXPONENT_HINT =
  'A number in the text has an exponent above 999, so it would be very long when it is written out. Leave such numbers out, or keep them as strings.'
const LOOSE_HINT =
  'PostgreSQL searches texts with a nondeterministic collation very slowly. Search a shorter text: left(x, 1500), or search for exactly the same letters: x COLLATE "C".'
const ITEMS_HINT =
  'JSON_TABLE may find 100000 items in one document, which may have 16 MB. Apply it to a part of the document, or use jsonb_array_elements or jsonb_path_query.'
const MARKS_HINT = 'The text has more than 32 combining marks in a row. Remove them, or shorten the text: left(x, 30).'
const PATH_HINT =
  "In lax mode the path compares each element with each other element. Use strict mode, as in 'strict $.items[*] ? (@.price > $.limit)', or apply the path to a smaller part of the document."
const COUNT_HINT =
  'Use a smaller count: repeat can return at most 262144 bytes; lpad and rpad at most 10000 characters.'

/** Hints for operators and functions that other dialects allow for these types. */
const OPERANDS: readonly (readonly [RegExp, string])[] = [
  [/(?:text|unknown|character varying) \S*\+ |\+ (?:text|unknown|character varying)/, 'Concatenate strings with ||.'],
  [/boolean \S*(?:&&|\|\|) boolean/, 'Combine conditions with AND and OR.'],
  [
    /(?:integer|bigint|numeric) = text|text = (?:integer|bigint|numeric)/,
    'Compare values of the same type: CAST(x AS text) = y.',
  ],
  [/json\b.* = |equality operator for type json\b/, 'Cast json to jsonb, or compare one field of it: x ->> $$field$$.'],
  [/round\(double precision, integer\)/, 'Write round(CAST(x AS numeric), 2).'],
  [/date_trunc|date_part|extract/, 'Cast the value to timestamp first: CAST(x AS timestamp).'],
]
