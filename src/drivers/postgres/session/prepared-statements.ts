// The queries that one session has prepared under names, to save the server parsing them
// (docs/decisions/0026-prepared-statements.md). A query is prepared if one of the same form was seen before.
import type { Preparable } from '../confined-query.ts'
import { closeStatement, type Field } from './protocol-messages.ts'

/** A prepared query takes about ten kilobytes of the server's memory. */
export const STATEMENTS_MAX = 100

export interface Statement {
  readonly name: string
  /** The server's description of the rows, or null before the first answer. If it changes, the statement fails. */
  fields: readonly Field[] | null
}

/** Queries that the server refused to prepare, although it ran them with the values in the text. */
const refused = new WeakSet<Preparable>()

export class PreparedStatements {
  readonly #tag: string
  readonly #known = new Map<Preparable, Statement>()
  #exposure: object | null = null
  /** Close messages for dropped statements, to be sent with the next request that prepares one. */
  #closes: Buffer[] = []
  #named = 0

  /** `tag` is a part of each name, and differs in each session. */
  constructor(tag: string) {
    this.#tag = tag
  }

  /** Returns whether this session may prepare the text. */
  static accepts(shared: Preparable): boolean {
    return !refused.has(shared)
  }

  /** Call this if the server refused to prepare the text, but ran it with the values in it. */
  static refuse(shared: Preparable): void {
    refused.add(shared)
  }

  find(shared: Preparable): Statement | undefined {
    return this.#known.get(shared)
  }

  /** Returns a new statement to prepare. Drops those of other exposures, and the oldest above STATEMENTS_MAX. */
  next({ exposure }: Preparable): Statement {
    if (this.#exposure !== exposure) for (const old of this.#known.keys()) this.drop(old)
    this.#exposure = exposure
    const [oldest] = this.#known.keys()
    if (this.#known.size >= STATEMENTS_MAX && oldest !== undefined) this.drop(oldest)
    return { name: `q${this.#tag}${this.#named++}`, fields: null }
  }

  /** Returns and removes the Close messages of dropped statements. */
  closes(): Buffer {
    return Buffer.concat(this.#closes.splice(0))
  }

  /** Call this when the server has prepared the statement. */
  keep(shared: Preparable, statement: Statement): void {
    this.#known.set(shared, statement)
  }

  drop(shared: Preparable): void {
    const statement = this.#known.get(shared)
    if (statement === undefined) return
    this.#known.delete(shared)
    this.#closes.push(closeStatement(statement.name))
  }

  /** Call this when the server no longer has the statements. */
  forget(): void {
    this.#known.clear()
    this.#closes = []
  }
}
