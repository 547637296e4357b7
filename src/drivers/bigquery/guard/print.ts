// The printer: tokens as they came, one space between, comments gone; each item of FROM in one of four forms, whatever the
// walk thought of it: a sub-select of exposed columns, UNNEST, the name of a WITH query, or what parentheses hold.
import type { From, FromItem, FromPart, Operand, Path, Piece, Pipe, Query, Run, Select, Star, With } from './nodes.ts'
import type { Resolved, Walk } from './walk.ts'
import type { Suffixes } from './source.ts'
import { isName, type Token } from './tokens.ts'

export function printQuery(walk: Walk, query: Query): string {
  return join([
    query.with === null ? '' : printWith(walk, query.with),
    printOperand(walk, query.first),
    ...query.rest.flatMap(({ operator, operand }) => [words(operator), printOperand(walk, operand)]),
    printRun(walk, query.tail),
    ...query.pipes.map((pipe) => printPipe(walk, pipe)),
  ])
}

function join(parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(' ')
}

function words(tokens: readonly Token[]): string {
  return tokens.map(({ text }) => text).join(' ')
}

function printWith(walk: Walk, { recursive, ctes }: With): string {
  const list = ctes.map(({ name, query }) => `${name.text} AS (${printQuery(walk, query)})`)
  return `WITH ${recursive ? 'RECURSIVE ' : ''}${list.join(', ')}`
}

function printOperand(walk: Walk, operand: Operand): string {
  switch (operand.kind) {
    case 'select':
      return printSelect(walk, operand)
    case 'nested':
      return `(${printQuery(walk, operand.query)})`
    case 'from':
      return `FROM ${printFrom(walk, operand.from)}`
  }
}

function printSelect(walk: Walk, { head, items, from, clauses }: Select): string {
  const list = items.map((item) => (item.kind === 'star' ? printStar(walk, item) : printRun(walk, item.run)))
  return join([
    'SELECT',
    words(head),
    list.join(', '),
    from === null ? '' : `FROM ${printFrom(walk, from)}`,
    printRun(walk, clauses),
  ])
}

function printStar(walk: Walk, star: Star): string {
  const taken = [...star.except.map((name) => printToken(walk, name)), ...(walk.stars.get(star) ?? [])]
  return join([
    star.of.length === 0 ? '*' : `${printRun(walk, star.of)} . *`,
    taken.length === 0 ? '' : `EXCEPT (${taken.join(', ')})`,
    printRun(walk, star.replace),
  ])
}

function printRun(walk: Walk, run: Run): string {
  return run.map((piece) => printPiece(walk, piece)).join(' ')
}

function printPiece(walk: Walk, piece: Piece): string {
  return piece.kind === 'nested' ? `(${printQuery(walk, piece.query)})` : printToken(walk, piece)
}

/** As it came, but for the pseudo columns that our sub-selects return under names of ours. */
function printToken(walk: Walk, token: Token): string {
  if (walk.renamed.size === 0 || !isName(token) || walk.kept.has(token)) return token.text
  return walk.renamed.get(token.name.toUpperCase()) ?? token.text
}

function printFrom(walk: Walk, from: From): string {
  return from.parts.map((part) => printPart(walk, part)).join(' ')
}

function printPart(walk: Walk, { joiner, item, conditions }: FromPart): string {
  return join([words(joiner), printItem(walk, item), ...conditions.map((run) => printRun(walk, run))])
}

function printItem(walk: Walk, item: FromItem): string {
  switch (item.kind) {
    case 'parenthesised':
      return `(${printFrom(walk, item.from)})`
    case 'unnest':
      return join([`UNNEST(${printRun(walk, item.run)})`, named(item.alias), words(item.offset)])
    case 'derived':
      return join([`(${printQuery(walk, item.query)})`, named(item.alias), ...pivots(walk, item), words(item.sample)])
    case 'path':
      return printPath(walk, item)
  }
}

function named(alias: Token | null): string {
  return alias === null ? '' : `AS ${alias.text}`
}

function pivots(walk: Walk, item: Extract<FromItem, { pivots: unknown }>): string[] {
  return item.pivots.map(({ run, alias }) => join([printRun(walk, run), named(alias)]))
}

function printPath(walk: Walk, path: Path): string {
  const resolved = walk.paths.get(path)
  switch (resolved?.kind) {
    case 'cte':
      return join([words(path.tokens), named(path.alias), ...pivots(walk, path), words(path.sample)])
    case 'array': {
      const alias = resolved.implicit === null ? named(path.alias) : `AS ${quote(resolved.implicit)}`
      return join([`UNNEST(${printRun(walk, path.tokens)})`, alias, words(path.offset)])
    }
    case 'table': {
      const alias = resolved.implicit === null ? named(path.alias) : `AS ${quote(resolved.implicit)}`
      return join([`(${subSelect(walk, path, resolved)})`, alias, ...pivots(walk, path)])
    }
    case undefined:
      throw new TypeError('a path that nobody looked up')
  }
}

function subSelect(walk: Walk, path: Path, resolved: Extract<Resolved, { kind: 'table' }>): string {
  const { source, entry } = resolved
  const { prefix, exposed } = walk
  const table = quote(`${exposed.capture.project}.${source.dataset}.${source.table}`)
  const pseudo = source.pseudoColumns.flatMap((each) => {
    const ours = walk.renamed.get(each)
    return ours === undefined ? [] : [`${prefix}.${each} AS ${ours}`]
  })
  const columns = walk.printed.of(source, entry.isWhole).list
  return join([
    `SELECT ${[columns, ...pseudo].join(', ')} FROM ${table} AS ${prefix}`,
    words(path.sample),
    source.suffixes === null ? '' : `WHERE ${filter(`${prefix}._TABLE_SUFFIX`, source.suffixes)}`,
  ])
}

function filter(suffix: string, { patterns, list }: Suffixes): string {
  const terms = patterns.map((pattern) => `REGEXP_CONTAINS(${suffix}, r'${pattern}')`)
  if (list.length > 0) terms.push(`${suffix} IN (${list.map((each) => `'${each}'`).join(', ')})`)
  return terms.join(' OR ')
}

/** Names come from the catalog or from between backquotes: neither a backquote nor a backslash is in them. */
function quote(name: string): string {
  return `\`${name}\``
}

function printPipe(walk: Walk, pipe: Pipe): string {
  switch (pipe.kind) {
    case 'run':
      return `|> ${printRun(walk, pipe.run)}`
    case 'join':
      return `|> ${printPart(walk, pipe.part)}`
    case 'set': {
      const operands = pipe.operands.map((query) => `(${printQuery(walk, query)})`)
      return `|> ${words(pipe.operator)} ${operands.join(', ')}`
    }
    case 'with':
      return `|> ${printWith(walk, pipe.with)}`
  }
}
