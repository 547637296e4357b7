// The callers' queries that one session has prepared under names, so that the server neither parses nor plans them again
// (docs/decisions/0026-prepared-statements.md). They are the printed texts of shapes that were seen twice.
import type { Preparable } from '../query.ts'
import { closeStatement, type Field } from './messages.ts'

/** Each takes some ten kilobytes of the server's memory. */
export const STATEMENTS_MAX = 100

export interface Statement {
  readonly name: string
  /** What the server described its rows as; it fails rather than answer with others. Null before the first answer. */
  fields: readonly Field[] | null
}

/** Texts that a server did not prepare although it runs them with the numbers in place. */
const refused = new WeakSet<Preparable>()

export class PreparedStatements {
  readonly #known = new Map<Preparable, Statement>()
  #exposure: object | null = null
  /** Frames that close what was dropped, for the next request that prepares. */
  #closes: Buffer[] = []
  #named = 0

  /** Whether a session may prepare this text. */
  static accepts(shared: Preparable): boolean {
    return !refused.has(shared)
  }

  /** To be called when a server refused to prepare this text and ran it otherwise. */
  static refuse(shared: Preparable): void {
    refused.add(shared)
  }

  find(shared: Preparable): Statement | undefined {
    return this.#known.get(shared)
  }

  /** A statement to prepare. What it has no room for, or what another exposure left, is dropped. */
  next({ exposure }: Preparable): Statement {
    if (this.#exposure !== exposure) for (const old of this.#known.keys()) this.drop(old)
    this.#exposure = exposure
    const [oldest] = this.#known.keys()
    if (this.#known.size >= STATEMENTS_MAX && oldest !== undefined) this.drop(oldest)
    return { name: `q${this.#named++}`, fields: null }
  }

  /** The frames that close what was dropped, for the next request. */
  closes(): Buffer {
    return Buffer.concat(this.#closes.splice(0))
  }

  /** To be called when the server has prepared it. */
  keep(shared: Preparable, statement: Statement): void {
    this.#known.set(shared, statement)
  }

  drop(shared: Preparable): void {
    const statement = this.#known.get(shared)
    if (statement === undefined) return
    this.#known.delete(shared)
    this.#closes.push(closeStatement(statement.name))
  }

  /** The server has none of them any more. */
  forget(): void {
    this.#known.clear()
    this.#closes = []
  }
}
