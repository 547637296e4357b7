// A datasource in the rooms, introspected and exposed, that tests profile and describe.
import assert from 'node:assert/strict'
import { createDatasource } from '../../src/datasources/datasources.ts'
import { describeDatasource } from '../../src/descriptions/describe-datasource.ts'
import { introspectDatasource } from '../../src/introspection/introspect-job.ts'
import { profileDatasource, resumeProfiles } from '../../src/introspection/profile-job.ts'
import { reach } from '../../src/datasources/require-reach.ts'
import { putExposure } from '../../src/exposure/exposure.ts'
import { asId, type DatasourceId, type JobId, type TeamId } from '../../src/ids.ts'
import { addMember, addTeam, sessionCall, type Rooms } from './connected.ts'

export interface Shown {
  readonly schema: string
  readonly table: string
  readonly columns: readonly string[] | null
}

export interface Stats {
  readonly nullFrac?: number
  readonly distinctCount?: number
  readonly values?: readonly { value: unknown; share?: number }[]
  readonly range?: { min: unknown; max: unknown }
  readonly keys?: readonly { key: string; share: number; types: readonly string[] }[]
  readonly signals: readonly string[]
}

interface Description {
  readonly profileCapturedAt: string | null
  readonly tables: readonly {
    readonly schema: string
    readonly table: string
    readonly columns: readonly { readonly name: string; readonly stats: Stats | null }[]
  }[]
}

export class Profiled {
  readonly rooms: Rooms
  readonly teamId: TeamId
  readonly id: DatasourceId
  readonly accountId: Parameters<typeof sessionCall>[0]

  private constructor(
    rooms: Rooms,
    at: { readonly teamId: TeamId; readonly id: DatasourceId; readonly accountId: Parameters<typeof sessionCall>[0] },
  ) {
    this.rooms = rooms
    this.teamId = at.teamId
    this.id = at.id
    this.accountId = at.accountId
  }

  /**
   * `order` is the connection part of the request. `tables` are the exposed tables, where null means all tables with
   * all columns. If the columns of a table are null, all of them are exposed.
   */
  static async connect(rooms: Rooms, order: object, tables: readonly Shown[] | null): Promise<Profiled> {
    const teamId = await addTeam(rooms)
    const owner = await addMember(rooms, teamId, 'OWNER')
    const call = sessionCall(owner.accountId, 'profileDatasource')
    const input = { name: 'shop', type: 'POSTGRES', connectionMode: 'DIRECT', sslMode: 'disable', ...order } as const
    const made = await createDatasource(rooms, call, owner, input)
    const profiled = new Profiled(rooms, { teamId, id: asId<DatasourceId>(made.id), accountId: owner.accountId })
    await introspectDatasource(rooms, profiled.call(), await profiled.at())
    const all = (await rooms.catalogs.full((await profiled.at()).row))?.tables ?? []
    await profiled.expose(tables ?? all.map(({ schema, table }) => ({ schema, table, columns: null })))
    return profiled
  }

  /** The same datasource, in other rooms over the same store. */
  static again(rooms: Rooms, { teamId, id, ...at }: Profiled): Profiled {
    return new Profiled(rooms, { teamId, id, accountId: at.accountId })
  }

  call() {
    return sessionCall(this.accountId, 'profileDatasource')
  }

  at() {
    return reach(this.rooms, this.call(), this.teamId, this.id)
  }

  async expose(tables: readonly Shown[]): Promise<void> {
    await putExposure(this.rooms, this.call(), await this.at(), { tables })
  }

  async start(order: Parameters<typeof profileDatasource>[3] = {}): Promise<JobId> {
    return (await profileDatasource(this.rooms, this.call(), await this.at(), order)).jobId
  }

  /** Waits for the end of a job, whatever its result is. */
  async ended(jobId: JobId) {
    for (;;) {
      const job = await this.rooms.jobs.find(this.id, jobId)
      assert.ok(job)
      if (job.state !== 'RUNNING' && job.state !== 'QUEUED') return job
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Profiles the tables in `order`, or all tables. The job must succeed. */
  async profile(order?: Parameters<typeof profileDatasource>[3]) {
    const job = await this.ended(await this.start(order))
    assert.equal(job.state, 'DONE', job.error)
    return job.result
  }

  async described(full = false) {
    return await describeDatasource(this.rooms, this.call(), await this.at(), { full })
  }

  async describe(full = false): Promise<Description> {
    return JSON.parse((await this.described(full)).json.toString())
  }

  async stats(table: string, column: string): Promise<Stats | null> {
    const found = (await this.describe()).tables.find((each) => each.table === table)
    return found?.columns.find((each) => each.name === column)?.stats ?? null
  }

  async stored(): Promise<string> {
    const rows = await this.rooms.store.db
      .selectFrom('profiles')
      .selectAll()
      .where('datasource_id', '=', this.id)
      .execute()
    return JSON.stringify(rows)
  }
}

/** Lets the rooms run profile jobs. */
export function withProfiles(rooms: Rooms): void {
  resumeProfiles(rooms)
}
