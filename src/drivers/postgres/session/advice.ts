// How to go on after an error of the database, by its code. The texts are ours: the database's own HINT may name what is
// hidden.

/**
 * Class 42: errors of PostgreSQL's own reading of the printed text. Only the messages of these codes pass to a caller.
 * The rest of the class may name what a policy, a view or the server added: a hidden table, a role.
 */
const READING: Readonly<Record<string, string>> = {
  '42601': 'Give both sides the same number of columns, and a sub-select used as a value one column only.',
  '42611': 'Correct the column definition.',
  '42702': 'Write which table the column is of: table.column.',
  '42712': 'Give each table in FROM an alias of its own.',
  '42725': 'Say which types are meant: CAST(x AS type) for each argument.',
  '42803': 'Add the column to GROUP BY, or use an aggregate of it: max(column), for example.',
  '42804': 'Convert one side, so that both have the same type: CAST(x AS type).',
  '42809': 'Use an aggregate with GROUP BY, a window function with OVER, any other function with neither.',
  '42846': 'Convert in two steps by way of text: CAST(CAST(x AS text) AS type).',
  '42883': 'Convert the values to types that it takes: CAST(x AS type).',
  '42P02': 'Send a value for each parameter that the text names.',
  '42P08': 'Say which type the parameter has: CAST($1 AS type).',
  '42P10': 'Name or count only what the select list holds; with DISTINCT, ORDER BY may name nothing else.',
  '42P18': 'Say which type is meant: CAST(x AS type).',
  '42P19': 'Name the recursive query once, in the second arm of UNION, outside of outer joins and sub-selects.',
  '42P20': 'Correct the window: one ORDER BY, a frame that begins before it ends, no window function in WHERE.',
  '42P22': 'Say which collation is meant: x COLLATE "C".',
}

/** The other codes: what to change in the query. */
const OTHER: Readonly<Record<string, string>> = {
  '0A000': 'Move functions that return rows to FROM, and leave out what this server does not have.',
  '21000': 'Add LIMIT 1 to the sub-select, or use an aggregate in it.',
  '22003': 'Convert to a larger type first, numeric for example.',
  '22007': "Write dates as 'YYYY-MM-DD', or read the text with to_date(text, format).",
  '22008': 'Write a date or time that exists; to_date(text, format) reads other orders of day and month.',
  '22012': 'Divide by NULLIF(x, 0).',
  '2201B': 'Correct the pattern. PostgreSQL has the syntax of POSIX: \\d, \\w and \\m for the beginning of a word.',
  '2201E': 'Use NULLIF(x, 0), or filter with WHERE x > 0.',
  '22P02': 'Filter the values that do not fit before the cast, or compare them as text.',
  '25006': 'Send a query that only reads.',
  '40001': 'Send the query again.',
  '40P01': 'Send the query again.',
  '42501': 'Ask an administrator to grant the login SELECT on the exposed tables and columns.',
  '42704': 'Leave the name out, or use one that every PostgreSQL has.',
  '42P21': 'Say which collation is meant: x COLLATE "C".',
  '55P03': 'Send the query again later.',
  '57014': 'Send the query again, or read less.',
}

const OF_CLASS: Readonly<Record<string, string>> = {
  '22': 'Filter the values that do not fit with WHERE or CASE before they are used.',
  '42': 'Write the query in another way, in smaller parts for example, to find what the database refuses.',
  '53': 'Read less: a narrower WHERE, fewer rows to sort.',
  '54': 'Split the query, or write it with fewer parts. Make its values shorter: smaller counts in repeat, lpad and rpad.',
}

const GENERAL = 'Try a simpler query. Where it fails too, tell an administrator.'

/** Whether the database's own words may pass: they are about the text that it was sent, and nothing else. */
export function isOfReading(code: string): boolean {
  return READING[code] !== undefined || /^5[34]/.test(code)
}

/** What a caller is advised to do. `message` is the database's; only what operands it names is read. */
export function adviceFor(code: string, message: string): string {
  if (code === '42883' || code === '42725') {
    const advice = OPERANDS.find(([pattern]) => pattern.test(message))
    if (advice !== undefined) return advice[1]
  }
  return READING[code] ?? OTHER[code] ?? OF_CLASS[code.slice(0, 2)] ?? GENERAL
}

/** What to write instead of what a bound of over-bound.ts stopped. */
export function adviceForBound(what: string): string {
  if (what === 'LIKE') return LIKE_HINT
  if (what === 'repeat' || what === 'lpad' || what === 'rpad') return COUNT_HINT
  if (what === 'normalize' || what === 'is_normalized') return 'Cut the text first: left(x, 1000).'
  return 'The size is the length of the text, multiplied by that of what is sought. Cut one of them first: left(x, 10000).'
}

const LIKE_HINT =
  'Write a shorter pattern, or cut the text: left(x, 10000) LIKE pattern. Instead of LIKE ANY (SELECT …) write EXISTS (SELECT … WHERE x LIKE pattern).'
const COUNT_HINT = 'Ask for fewer letters: repeat makes 262144 bytes at most, lpad and rpad 10000 letters.'

/** Operators that other dialects read otherwise. */
const OPERANDS: readonly (readonly [RegExp, string])[] = [
  [/(?:text|unknown|character varying) \S*\+ |\+ (?:text|unknown|character varying)/, 'Join texts by ||.'],
  [/boolean \S*(?:&&|\|\|) boolean/, 'Join conditions by AND and OR.'],
  [
    /(?:integer|bigint|numeric) = text|text = (?:integer|bigint|numeric)/,
    'Compare like with like: CAST(x AS text) = y.',
  ],
  [/json\b.* = |equality operator for type json\b/, 'Cast json to jsonb, or compare one field of it: x ->> $$field$$.'],
  [/round\(double precision, integer\)/, 'Write round(CAST(x AS numeric), 2).'],
  [/date_trunc|date_part|extract/, 'Cast the value to timestamp first: CAST(x AS timestamp).'],
]
