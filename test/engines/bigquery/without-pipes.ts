// Rewrites pipe syntax to equivalent sub-queries, because the analyzer is older than pipes. Handles only plain cases:
// after the first operator that makes new columns, table names are lost. With an unknown operator (RENAME, WINDOW,
// WITH), the query stays unchanged, and the analyzer refuses it.
import { lex } from '../../../src/drivers/bigquery/guard/lex.ts'

interface Word {
  readonly text: string
  readonly key: string
}

export function withoutPipes(sql: string): string {
  if (!sql.includes('|>')) return sql
  try {
    return query(lex(sql).map(({ text, key }) => ({ text, key })))
  } catch {
    return sql
  }
}

/** Rewrites the pipes inside parentheses first. Throws for unknown pipes. */
function query(words: readonly Word[]): string {
  const flat: Word[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as Word
    if (word.key !== '(') {
      flat.push(word)
      continue
    }
    const end = closing(words, at)
    const inside = words.slice(at + 1, end)
    flat.push({ text: `( ${inside.some(({ key }) => key === '|>') ? query(inside) : textOf(inside)} )`, key: '()' })
    at = end
  }
  const parts = split(flat, '|>')
  if (parts.length === 1) return textOf(flat)
  const [base = [], ...pipes] = parts
  const start = base[0]?.key === 'WITH' ? base.findIndex(({ key }) => key === 'FROM' || key === 'SELECT') : 0
  return `${textOf(base.slice(0, start))} ${piped(base.slice(start), pipes)}`
}

function piped(base: readonly Word[], pipes: readonly (readonly Word[])[]): string {
  let from = base[0]?.key === 'FROM' ? textOf(base.slice(1)) : `( ${textOf(base)} )`
  let where = ''
  const taken = (list: string, rest = ''): string => `( SELECT ${list} FROM ${from}${where} ${rest} )`
  for (const [first, ...words] of pipes) {
    const rest = textOf(words)
    if (first?.key === 'WHERE' && where === '') {
      where = ` WHERE ${rest}`
      continue
    }
    if (['JOIN', 'LEFT', 'INNER', 'CROSS', 'FULL', 'RIGHT'].includes(first?.key ?? '') && where === '') {
      from = `${from} ${first?.text} ${rest}`
      continue
    }
    from = stepped(first, words, rest, taken)
    where = ''
  }
  return `SELECT * FROM ${from}${where}`
}

function stepped(
  first: Word | undefined,
  words: readonly Word[],
  rest: string,
  taken: (list: string, rest?: string) => string,
): string {
  switch (first?.key) {
    case 'WHERE':
      return `${taken('*')} WHERE ${rest}`
    case 'AS':
      return `${taken('*')} AS ${rest}`
    case 'SELECT':
      return taken(rest)
    case 'EXTEND':
      return taken(`*, ${rest}`)
    case 'DROP':
      return taken(`* EXCEPT ( ${rest} )`)
    case 'LIMIT':
    case 'ORDER':
      return taken('*', `${first.key} ${rest}`)
    case 'DISTINCT':
      return taken('DISTINCT *')
    case 'UNION':
    case 'INTERSECT':
    case 'EXCEPT':
      return `( ${[taken('*'), ...split(words.slice(1), ',').map(textOf)].join(` ${first.key} ${words[0]?.text} `)} )`
    case 'AGGREGATE': {
      const at = words.findIndex(({ key }) => key === 'GROUP')
      const keys = at < 0 ? [] : split(words.slice(at + 2), ',').map(textOf)
      const list = [...keys, ...(at === 0 ? [] : [textOf(at < 0 ? words : words.slice(0, at))])].join(', ')
      return taken(list, keys.length === 0 ? '' : `GROUP BY ${keys.map((_, n) => n + 1).join(', ')}`)
    }
    default:
      throw new Error('an unknown pipe operator')
  }
}

function textOf(words: readonly Word[]): string {
  return words.map(({ text }) => text).join(' ')
}

function split(words: readonly Word[], sign: string): Word[][] {
  const parts: Word[][] = [[]]
  for (const word of words) {
    if (word.key === sign) parts.push([])
    else parts.at(-1)?.push(word)
  }
  return parts
}

function closing(words: readonly Word[], open: number): number {
  let depth = 0
  for (let at = open; at < words.length; at++) {
    if (words[at]?.key === '(') depth++
    if (words[at]?.key === ')' && --depth === 0) return at
  }
  throw new Error('parentheses do not match')
}
