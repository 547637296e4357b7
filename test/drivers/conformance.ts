// Tests what every kind of database must do. Each kind provides a real server, and queries in its own language. If a
// kind cannot do something, that test is skipped by name, with the reason.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Confined } from '../../src/drivers/confined.ts'
import type { Catalog, Connection, Driver, Limits, SettingsInput } from '../../src/drivers/driver.ts'
import { AppError, type Code } from '../../src/errors.ts'
import { until } from '../support/until.ts'

export type Duty =
  | 'introspection'
  | 'reread'
  | 'confined only'
  | 'pure verdicts'
  | 'refusals'
  | 'answers'
  | 'row cap'
  | 'byte cap'
  | 'estimate'
  | 'cost limit'
  | 'deadline'
  | 'abort'
  | 'failures'
  | 'unreachable'

/** A server with a few rows. */
export interface Ground extends AsyncDisposable {
  readonly driver: Driver
  readonly settings: SettingsInput
  readonly wrongPassword: SettingsInput
  readonly nobody: SettingsInput
  /**
   * Removes what is hidden from the result of introspection, as an exposure does. The names in `bodies.hidden` must be
   * removed.
   */
  cut(catalog: Catalog): Catalog
  readonly bodies: {
    /** A query whose answer has exactly the rows in `rows`. */
    readonly small: unknown
    readonly rows: string
    /** A query with at least 1,000 rows. */
    readonly many: unknown
    /** A query with more than 100,000 bytes in few rows. */
    readonly wide: unknown
    /** A query that runs for a minute unless it is cancelled. */
    readonly slow: unknown
    /** A query that the guard allows, but the database refuses. */
    readonly failing: unknown
    /** A query with a name that is not exposed. */
    readonly hidden: unknown
    readonly writing: unknown
    readonly malformed: unknown
  }
  /** No refusal may contain these words. */
  readonly secret: RegExp
  /** Returns how many queries of the login run in the database, without the query that counts them. */
  working(): Promise<number>
  /** A query that the guard of another kind has confined, or null to skip this case. */
  readonly alien: Confined | null
}

const wide: Limits = { rowCap: 10_000, maxResponseBytes: 50_000_000, timeoutMs: 30_000, maxCost: 1e9 }

export function conformance(
  kind: string,
  open: () => Promise<Ground>,
  skips: Readonly<Partial<Record<Duty, string>>> = {},
): void {
  describe(`the duties of every kind: ${kind}`, () => {
    let ground: Ground
    let exposed: Catalog
    before(async () => {
      ground = await open()
      await using connection = await connect()
      exposed = ground.cut(await connection.introspect(soon()))
    })
    after(async () => {
      await ground[Symbol.asyncDispose]()
    })

    const soon = (): AbortSignal => AbortSignal.timeout(60_000)
    const connect = (settings = ground.settings): Promise<Connection> =>
      ground.driver.connect(ground.driver.settings(settings), { allowPrivateHosts: true }, soon())
    const judge = (body: unknown, limits = wide, signal = soon()) =>
      ground.driver.confine(ground.driver.read(body), exposed, limits, signal)
    const confined = async (body: unknown, limits = wide): Promise<Confined> => {
      const verdict = await judge(body, limits)
      assert.equal(verdict.kind, 'confined', JSON.stringify(verdict))
      return verdict.kind === 'confined' ? verdict.query : assert.fail()
    }
    const duty = (name: Duty, promise: string, body: () => Promise<void>): void => {
      test(`${name}: ${promise}`, skips[name] === undefined ? {} : { skip: skips[name] }, body)
    }
    const refused = (promise: Promise<unknown>, ...codes: Code[]): Promise<void> =>
      assert.rejects(promise, (error) => {
        assert.ok(error instanceof AppError, String(error))
        assert.ok(codes.includes(error.code), `${error.code}: ${error.message}`)
        assert.doesNotMatch(error.message, ground.secret)
        return true
      })

    duty('confined only', 'only a query that this kind’s guard sealed reaches the database', async () => {
      await using connection = await connect()
      const real = await confined(ground.bodies.small)
      const forged = [{}, { ...real }, Object.create(real) as object, { text: 'SELECT 1' }, ground.alien ?? {}]
      for (const query of forged as Confined[]) {
        await assert.rejects(async () => connection.run(query, wide, soon()), TypeError)
        await assert.rejects(async () => connection.estimate(query, wide, soon()), TypeError)
        assert.throws(() => ground.driver.printed(query), TypeError)
      }
      assert.equal((await connection.run(real, wide, soon())).rows, ground.bodies.rows)
    })

    duty('introspection', 'reports its progress to the end', async () => {
      await using connection = await connect()
      const progress: (readonly [number, number])[] = []
      await connection.introspect(soon(), (done, total) => progress.push([done, total]))
      const [last] = progress.slice(-1)
      assert.ok(last !== undefined && last[0] === last[1])
      assert.deepEqual(
        progress.map(([done]) => done),
        progress.map((_, n) => n + 1),
      )
    })

    duty('reread', 'a body read from the text in the audit gets the same verdict', async () => {
      for (const body of [ground.bodies.small, ground.bodies.hidden, ground.bodies.malformed]) {
        const { text } = ground.driver.read(body)
        const [first, again] = [
          await judge(body),
          await ground.driver.confine(ground.driver.reread(text), exposed, wide, soon()),
        ]
        if (first.kind === 'confined' && again.kind === 'confined') {
          assert.equal(ground.driver.printed(again.query), ground.driver.printed(first.query))
        } else assert.deepEqual(again, first)
      }
    })

    duty('pure verdicts', 'the same body and exposure give the same verdict, without a database', async () => {
      for (const body of [ground.bodies.small, ground.bodies.hidden, ground.bodies.malformed]) {
        const [one, two] = await Promise.all([judge(body), judge(body)])
        if (one.kind === 'confined' && two.kind === 'confined') {
          assert.equal(ground.driver.printed(one.query), ground.driver.printed(two.query))
        } else assert.deepEqual(one, two)
      }
      const empty = { ...exposed, tables: [] }
      const none = await ground.driver.confine(ground.driver.read(ground.bodies.small), empty, wide, soon())
      assert.equal(none.kind, 'denied')
    })

    duty(
      'refusals',
      'a query that names hidden data, writes or is malformed is refused, and the hint reveals nothing',
      async () => {
        for (const body of [ground.bodies.hidden, ground.bodies.writing]) {
          const verdict = await judge(body)
          assert.equal(verdict.kind, 'denied')
          if (verdict.kind !== 'denied') return
          assert.ok(verdict.why !== '' && verdict.hint !== '' && verdict.blocked.name !== '')
          assert.doesNotMatch(verdict.hint, ground.secret)
        }
        assert.equal((await judge(ground.bodies.malformed)).kind, 'malformed')
        assert.throws(() => ground.driver.read({ nonsense: 1 }), { code: 'INVALID_REQUEST' })
      },
    )

    duty('answers', 'rows are exact JSON, columns have names and types, one connection runs many queries', async () => {
      await using connection = await connect()
      for (let i = 0; i < 3; i++) {
        const answer = await connection.run(await confined(ground.bodies.small), wide, soon())
        assert.equal(answer.rows, ground.bodies.rows)
        assert.equal(answer.rowCount, (JSON.parse(String(answer.rows)) as unknown[]).length)
        assert.equal(answer.truncated, false)
        assert.ok(answer.columns.every((column) => column.dataType !== ''))
        assert.equal(connection.usable, true)
      }
    })

    duty('row cap', 'rows beyond the limit are cut, and the result says so', async () => {
      const limits = { ...wide, rowCap: 7 }
      await using connection = await connect()
      const answer = await connection.run(await confined(ground.bodies.many, limits), limits, soon())
      assert.deepEqual(
        [answer.rowCount, answer.truncated, (JSON.parse(String(answer.rows)) as unknown[]).length],
        [7, true, 7],
      )
      assert.equal((await connection.run(await confined(ground.bodies.small), wide, soon())).rows, ground.bodies.rows)
    })

    duty('byte cap', 'a result over the limit is cut or refused', async () => {
      const limits = { ...wide, maxResponseBytes: 20_000 }
      await using connection = await connect()
      const answer = await connection
        .run(await confined(ground.bodies.wide, limits), limits, soon())
        .catch((e: unknown) => {
          assert.ok(e instanceof AppError && e.code === 'QUERY_FAILED', String(e))
          return null
        })
      if (answer === null) return
      assert.ok(answer.truncated && answer.rows.length <= 20_000, String(answer.rows.length))
    })

    duty('estimate', 'a cost is a number, and nothing runs', async () => {
      await using connection = await connect()
      const { cost } = await connection.estimate(await confined(ground.bodies.slow), wide, soon())
      assert.ok(Number.isFinite(cost) && cost >= 0)
      assert.equal(await ground.working(), 0)
    })

    duty('cost limit', 'a query over the limit is refused, and the connection stays usable', async () => {
      const limits = { ...wide, maxCost: 0.001 }
      await using connection = await connect()
      const running = connection.run(await confined(ground.bodies.many, limits), limits, soon())
      await assert.rejects(running, (error) => {
        assert.ok(error instanceof AppError && error.code === 'QUERY_DENIED', String(error))
        assert.equal((error.extra['blocked'] as { kind: string }).kind, 'cost')
        return true
      })
      assert.equal(connection.usable, true)
    })

    duty('deadline', 'a query over its deadline is also cancelled in the database', async () => {
      const limits = { ...wide, timeoutMs: 300 }
      await using connection = await connect()
      await refused(connection.run(await confined(ground.bodies.slow), limits, soon()), 'QUERY_TIMEOUT')
      await settled(ground)
      if (!connection.usable) return
      assert.equal((await connection.run(await confined(ground.bodies.small), wide, soon())).rows, ground.bodies.rows)
    })

    duty(
      'abort',
      'a disconnect cancels the query in the database, and the connection stays usable or is given up',
      async () => {
        const query = await confined(ground.bodies.slow)
        await using connection = await connect()
        const gone = new AbortController()
        let outcome = 'running'
        const running = connection.run(query, wide, gone.signal).then(
          () => (outcome = 'answered'),
          () => (outcome = 'ended'),
        )
        while (outcome === 'running' && (await ground.working()) === 0);
        gone.abort()
        assert.equal(await running, 'ended')
        await settled(ground)
        if (connection.usable) {
          assert.equal(
            (await connection.run(await confined(ground.bodies.small), wide, soon())).rows,
            ground.bodies.rows,
          )
        }
        await assert.rejects(connection.run(query, wide, AbortSignal.abort()))
        await assert.rejects(connection.introspect(AbortSignal.abort()))
      },
    )

    duty('failures', 'an error of the database gets QUERY_FAILED, and the connection stays usable', async () => {
      await using connection = await connect()
      await refused(connection.run(await confined(ground.bodies.failing), wide, soon()), 'QUERY_FAILED')
      assert.equal((await connection.run(await confined(ground.bodies.small), wide, soon())).rows, ground.bodies.rows)
    })

    duty('unreachable', 'a wrong password and a closed port are refused; test() reports its steps', async () => {
      await refused(connect(ground.wrongPassword), 'DATASOURCE_UNAVAILABLE')
      await refused(connect(ground.nobody), 'DATASOURCE_UNAVAILABLE')
      await using connection = await connect()
      const report = await connection.test(exposed, soon())
      assert.equal(report.ok, true)
      assert.ok(report.latencyMs > 0 && report.serverVersion !== null && report.steps.length > 3)
      assert.ok(report.steps.every((step) => step.message !== '' && (step.status === 'PASS' || step.remedy !== null)))
    })
  })
}

/** Waits until no query of the login runs in the database. */
async function settled(ground: Ground): Promise<void> {
  await until('the work ends in the database', async () => (await ground.working()) === 0)
}
