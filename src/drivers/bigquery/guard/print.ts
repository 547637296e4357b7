// Prints the tokens of a query without comments, usually with one space between them. Only the names of pseudo columns
// and the paths of tables are changed. An item of FROM is printed as a sub-select of exposed columns, UNNEST, the name
// of a WITH query, or parentheses that contain a query or further items.
import { identifier } from '../quote.ts'
import type { From, FromItem, FromPart, Operand, Path, Piece, Pipe, Query, Run, Select, Star, With } from './nodes.ts'
import { Out, type From as Place, type Printed } from './printed-text.ts'
import type { Resolved, Walk } from './walk-state.ts'
import type { Suffixes } from './source.ts'
import { isName, type Token } from './tokens.ts'

/** Throws Refusal (limit) if the printed SQL becomes longer than BigQuery accepts. */
export function print(walk: Walk, query: Query): Printed {
  const out = new Out(walk.work)
  new Printer(walk, out).query(query)
  return out.done()
}

class Printer {
  readonly #walk: Walk
  readonly #out: Out
  /** The token of the caller that was printed last. Words that the guard adds get its position. */
  #last: Place = { at: 0 }

  constructor(walk: Walk, out: Out) {
    this.#walk = walk
    this.#out = out
  }

  query(query: Query): void {
    if (query.with !== null) this.#with(query.with)
    this.#operand(query.first)
    for (const { operator, operand } of query.rest) {
      this.#words(operator)
      this.#operand(operand)
    }
    this.#run(query.tail)
    for (const pipe of query.pipes) this.#pipe(pipe)
  }

  /** Prints words that are no token of the caller. */
  #own(text: string): void {
    this.#out.word(text, this.#last)
  }

  #words(tokens: readonly Token[]): void {
    for (const token of tokens) this.#verbatim(token)
  }

  #verbatim(token: Token): void {
    this.#last = token
    this.#out.word(token.text, token)
  }

  /** Only the name of a pseudo column changes: the sub-select returns it under a generated name. */
  #token(token: Token): void {
    this.#last = token
    const { renamed, unrenamed } = this.#walk
    const isOurs = renamed.size > 0 && isName(token) && !unrenamed.has(token)
    const text = isOurs ? (renamed.get(token.name.toUpperCase()) ?? token.text) : token.text
    this.#out.word(text, token)
  }

  #run(run: Run): void {
    for (const piece of run) this.#piece(piece)
  }

  #piece(piece: Piece): void {
    if (piece.kind === 'nested') this.#nested(piece.query)
    else this.#token(piece)
  }

  #nested(query: Query): void {
    this.#out.open('(', this.#last)
    this.query(query)
    this.#out.close(')', this.#last)
  }

  #list<T>(items: Iterable<T>, print: (item: T) => void): void {
    let isFirst = true
    for (const item of items) {
      if (!isFirst) this.#out.close(',', this.#last)
      isFirst = false
      print(item)
    }
  }

  #with({ recursive, ctes }: With): void {
    this.#own(recursive ? 'WITH RECURSIVE' : 'WITH')
    this.#list(ctes, ({ name, query }) => {
      this.#verbatim(name)
      this.#own('AS')
      this.#nested(query)
    })
  }

  #operand(operand: Operand): void {
    switch (operand.kind) {
      case 'select':
        return this.#select(operand)
      case 'nested':
        return this.#nested(operand.query)
      case 'from':
        this.#own('FROM')
        return this.#from(operand.from)
    }
  }

  #select({ head, items, from, clauses }: Select): void {
    this.#own('SELECT')
    this.#words(head)
    this.#list(items, (item) => (item.kind === 'star' ? this.#star(item) : this.#run(item.run)))
    if (from !== null) {
      this.#own('FROM')
      this.#from(from)
    }
    this.#run(clauses)
  }

  #star(star: Star): void {
    if (star.of.length > 0) {
      this.#run(star.of)
      this.#own('.')
    }
    this.#own('*')
    const ours = this.#walk.stars.get(star) ?? new Set<string>()
    if (star.except.length + ours.size > 0) {
      this.#own('EXCEPT')
      this.#out.open('(', this.#last)
      this.#list<Token | string>([...star.except, ...ours], (name) => {
        if (typeof name === 'string') this.#own(name)
        else this.#token(name)
      })
      this.#out.close(')', this.#last)
    }
    this.#run(star.replace)
  }

  #from(from: From): void {
    for (const part of from.parts) this.#part(part)
  }

  #part({ joiner, item, conditions }: FromPart): void {
    this.#words(joiner)
    this.#item(item)
    for (const run of conditions) this.#run(run)
  }

  #item(item: FromItem): void {
    switch (item.kind) {
      case 'parenthesised':
        this.#out.open('(', this.#last)
        this.#from(item.from)
        return this.#out.close(')', this.#last)
      case 'unnest':
        this.#unnest(item.run)
        this.#alias(item.alias)
        return this.#words(item.offset)
      case 'derived':
        this.#nested(item.query)
        this.#alias(item.alias)
        this.#pivots(item)
        return this.#words(item.sample)
      case 'path':
        return this.#path(item)
    }
  }

  #unnest(run: Run): void {
    this.#out.open('UNNEST(', run[0]?.kind === 'nested' ? this.#last : (run[0] ?? this.#last))
    this.#run(run)
    this.#out.close(')', this.#last)
  }

  #alias(alias: Token | null): void {
    if (alias === null) return
    this.#own('AS')
    this.#verbatim(alias)
  }

  #pivots(item: Extract<FromItem, { pivots: unknown }>): void {
    for (const { run, alias } of item.pivots) {
      this.#run(run)
      this.#alias(alias)
    }
  }

  #path(path: Path): void {
    const resolved = this.#walk.paths.get(path)
    switch (resolved?.kind) {
      case 'cte':
        this.#words(path.tokens)
        this.#alias(path.alias)
        this.#pivots(path)
        return this.#words(path.sample)
      case 'array':
        this.#unnest(path.tokens)
        this.#aliasOf(path, resolved.implicit)
        return this.#words(path.offset)
      case 'table':
        this.#subSelect(path, resolved)
        this.#aliasOf(path, resolved.implicit)
        return this.#pivots(path)
      case undefined:
        throw new TypeError('a path without a resolution')
    }
  }

  #aliasOf(path: Path, implicit: string | null): void {
    if (implicit === null) this.#alias(path.alias)
    else this.#own(`AS ${identifier(implicit)}`)
  }

  #subSelect(path: Path, { source, entry }: Extract<Resolved, { kind: 'table' }>): void {
    const { prefix, exposed, renamed, printed } = this.#walk
    this.#last = path
    this.#out.open('(', path)
    const pseudo = source.pseudoColumns.flatMap((each) => {
      const ours = renamed.get(each)
      return ours === undefined ? [] : [`${prefix}.${each} AS ${ours}`]
    })
    const columns = printed.of(source, entry.isWhole).list
    const table = identifier(`${exposed.capture.project}.${source.dataset}.${source.table}`)
    this.#own(`SELECT ${[columns, ...pseudo].join(', ')} FROM ${table} AS ${prefix}`)
    this.#words(path.sample)
    if (source.suffixes !== null) this.#own(`WHERE ${filter(`${prefix}._TABLE_SUFFIX`, source.suffixes)}`)
    this.#out.close(')', path)
  }

  #pipe(pipe: Pipe): void {
    this.#own('|>')
    switch (pipe.kind) {
      case 'run':
        return this.#run(pipe.run)
      case 'join':
        return this.#part(pipe.part)
      case 'set':
        this.#words(pipe.operator)
        return this.#list(pipe.operands, (query) => this.#nested(query))
      case 'with':
        return this.#with(pipe.with)
    }
  }
}

function filter(suffix: string, { patterns, list }: Suffixes): string {
  const terms = patterns.map((pattern) => `REGEXP_CONTAINS(${suffix}, r'${pattern}')`)
  if (list.length > 0) terms.push(`${suffix} IN (${list.map((each) => `'${each}'`).join(', ')})`)
  return terms.join(' OR ')
}
