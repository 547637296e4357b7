// Starts the service with a BigQuery double, and Google's engine behind the double.
import { openBrain, type GoogleBrain } from '../../engines/bigquery/evaluate-query.ts'
import { Engine, languageOptions } from '../../engines/bigquery/engine.ts'
import { startApp, type Answer, type TestApp } from '../../support/app.ts'
import { startBigQuery, type BigQueryDouble } from '../../support/bigquery.ts'
import { CUT, DATASETS, EXPOSED, WORLD } from './sample-project.ts'

export interface Stage extends AsyncDisposable {
  readonly app: TestApp
  readonly token: string
  readonly place: { readonly teamId: string; readonly datasourceId: string }
  readonly brain: GoogleBrain
  readonly double: BigQueryDouble
  /** Runs queries on tables without the hidden data. */
  readonly oracle: Engine
  query(sql: string, limit?: number): Promise<Answer>
  describe(): Promise<string>
}

export async function openStage(): Promise<Stage> {
  await using opened = new AsyncDisposableStack()
  const brain = opened.use(await openBrain(WORLD))
  const oracle = new Engine(brain.zetasql, await languageOptions(brain.zetasql), WORLD.project, CUT)
  const { project, location } = WORLD
  const double = opened.use(await startBigQuery({ project, location, datasets: DATASETS, brain, pageItems: 5 }))
  const app = opened.use(await startApp({ env: { VITRINE_ALLOW_BIGQUERY_ENDPOINT: '1' } }))
  const owner = await app.person('Olga')
  const team = await app.team(owner)
  const config = { apiEndpoint: double.url, location, datasets: Object.keys(DATASETS) }
  const how = { type: 'BIGQUERY', connectionMode: 'SERVICE_ACCOUNT', sslMode: undefined, database: project, config }
  const datasourceId = await app.datasource(owner, team, how, EXPOSED)
  const at = `/teams/${team}/datasources/${datasourceId}`
  const token = await app.key(owner)
  const held = opened.move()
  return {
    app,
    token,
    place: { teamId: team, datasourceId },
    brain,
    double,
    oracle,
    query: (sql, limit) => app.ask('POST', `${at}/query`, { token, body: { sql, ...(limit && { limit }) } }),
    describe: async () => (await app.ask('GET', `${at}/schema`, { token })).text,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}
