// Checks SQL that the guard has printed, without using the guard's code. Each item of FROM and JOIN must have one of
// four forms, and a sub-select may name only exposed tables and columns. Comments, semicolons, parameters, `$` and `{`
// are forbidden.
interface Word {
  readonly text: string
  /** The keyword in capitals, or the punctuation mark. Empty for strings, quoted names and names after a dot. */
  readonly key: string
}

const TOKENS =
  /\s+|((?:[rR][bB]?|[bB][rR]?)?(?:'''(?:\\[^]|[^\\])*?'''|"""(?:\\[^]|[^\\])*?"""|'(?:\\.|[^'\\\r\n])*'|"(?:\\.|[^"\\\r\n])*"))|`[^`]*`|\d[\w.]*|\w+|\|>|--|\/\*|[^]/gy
const ENDS = new Set('WHERE GROUP HAVING QUALIFY WINDOW ORDER LIMIT UNION INTERSECT EXCEPT |> )'.split(' '))

/**
 * Returns the problems of the SQL. `shown` returns the exposed columns of a table (`p.d.t`), or null if the table is
 * hidden.
 */
export function strays(text: string, project: string, shown: (table: string) => readonly string[] | null): string[] {
  const words = scan(text)
  const found: string[] = []
  const ctes = new Set(words.flatMap((word, n) => (words[n + 1]?.key === 'AS' && words[n + 2]?.key === '(' ? [bare(word)] : [])))
  for (const { text: word, key } of words) if (['--', '/*', '#', ';', '@', '$', '{', '?'].includes(key)) found.push(word)
  for (const [n, word] of words.entries()) {
    if (word.key !== 'FROM' && word.key !== 'JOIN') continue
    if (word.key === 'FROM' && (words[n - 1]?.key === 'DISTINCT' || isExtract(words, n))) continue
    for (const at of places(words, n)) found.push(...wrong(words, at, project, ctes, shown))
  }
  return found
}

function scan(text: string): Word[] {
  const words: Word[] = []
  for (const [match, string] of text.matchAll(TOKENS)) {
    if (/^\s/.test(match)) continue
    const isMember = words.at(-1)?.key === '.' && /^\w/.test(match)
    words.push({ text: match, key: string !== undefined || match.startsWith('`') || isMember ? '' : match.toUpperCase() })
  }
  return words
}

function bare({ text }: Word): string {
  return text.replaceAll('`', '').toLowerCase()
}

/** True for the FROM of `EXTRACT(… FROM …)`, which is followed by no table. */
function isExtract(words: readonly Word[], at: number): boolean {
  for (let n = at - 1, depth = 0; n >= 0; n -= 1) {
    const key = words[n]?.key
    if (key === ')' || key === ']') depth += 1
    else if (key === '(' || key === '[') {
      if (depth === 0) return key === '(' && words[n - 1]?.key === 'EXTRACT'
      depth -= 1
    } else if (depth === 0 && key === 'SELECT') return false
  }
  return false
}

/** Returns the positions at which the items of a FROM or JOIN begin. `at` is the position of the keyword. */
function places(words: readonly Word[], at: number): number[] {
  const found = [at + 1]
  for (let n = at + 1, depth = 0; n < words.length; n += 1) {
    const key = words[n]?.key ?? ''
    if (key === '(' || key === '[') depth += 1
    else if (depth === 0 && (ENDS.has(key) || key === 'JOIN' || key === ']')) break
    else if (key === ')' || key === ']') depth -= 1
    else if (depth === 0 && key === ',') found.push(n + 1)
  }
  return found
}

function wrong(
  words: readonly Word[],
  at: number,
  project: string,
  ctes: ReadonlySet<string>,
  shown: (table: string) => readonly string[] | null,
): string[] {
  let start = at
  while (words[start]?.key === '(') start += 1
  const word = words[start]
  const next = words[start + 1]
  if (word === undefined) return ['nothing behind FROM']
  if (start > at && ['SELECT', 'WITH', 'FROM'].includes(word.key)) return []
  if (word.key === 'UNNEST') return next?.key === '(' ? [] : ['UNNEST without parentheses']
  if (word.text.startsWith(`\`${project}.`)) return wrongSubSelect(words, start, shown)
  if (next?.key === '.' || next?.key === '(') return [`${word.text}${next.key}`]
  return ctes.has(bare(word)) ? [] : [`table ${word.text}`]
}

/**
 * Returns the problems of a sub-select that the guard has generated. Its form is SELECT _vt.`a`, …, _vt.pseudo AS
 * _vt_pseudo FROM `p.d.t` AS _vt. For a wildcard table, it must also filter the shards.
 */
function wrongSubSelect(
  words: readonly Word[],
  at: number,
  shown: (table: string) => readonly string[] | null,
): string[] {
  const table = words[at]?.text.slice(1, -1) ?? ''
  const alias = words[at + 2]?.text ?? ''
  if (words[at + 1]?.key !== 'AS' || !/^_vt\d*$/.test(alias)) return [`${table} without our alias`]
  const isWild = table.endsWith('*')
  const columns = shown(isWild ? table.replace(/_\d*\*$/, '_20240101') : table)
  if (columns === null) return [`table ${table}`]
  if (isWild && !/^(?:TABLESAMPLE \w+ \( [\d.]+ \w+ \) )?WHERE REGEXP_CONTAINS \( _vt\d* \. _TABLE_SUFFIX , r'\^\[0-9\]\{\d\}\$' \)/.test(
      words.slice(at + 3, at + 20).map(({ text }) => text).join(' '),
    )) return [`wildcard ${table} without its filter`]
  let start = at - 1
  while (start > 0 && words[start]?.key !== 'SELECT') start -= 1
  const list = words.slice(start + 1, at - 1).map(({ text }) => text).join(' ').split(' , ')
  const column = new RegExp(`^${alias} \\. (?:\`(.*)\`|_\\w+ AS ${alias}_\\w+)$`)
  return list.flatMap((item) => {
    const match = column.exec(item)
    return match !== null && (match[1] === undefined || columns.includes(match[1])) ? [] : [`${item} of ${table}`]
  })
}
