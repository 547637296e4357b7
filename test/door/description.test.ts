// Tests the description over HTTP, on both stores. A restart changes no byte of it. Every change that affects the
// description appears in the next answer.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startApp, type Answer, type Person, type TestApp } from '../support/app.ts'
import { CANARY, EXPOSED, openDocumentedShop, type DocumentedShop } from '../support/documented.ts'
import { DIALECTS, storeSource, type StoreConfig, type StoreSource } from '../support/stores.ts'

for (const dialect of DIALECTS) {
  describe(`the description, with the store on ${dialect}`, () => {
    let source: StoreSource
    let config: StoreConfig
    let env: Record<string, string>
    let shop: DocumentedShop
    let app: TestApp
    let owner: Person

    before(async () => {
      source = await storeSource(dialect)
      config = await source.config()
      const { dataDir, databaseUrl } = config
      const key = Buffer.alloc(32, 7).toString('base64')
      env = { VITRINE_DATA_DIR: dataDir, VITRINE_SECRET_KEY: key }
      if (databaseUrl !== null) env['DATABASE_URL'] = databaseUrl
      shop = await openDocumentedShop({ env })
      ;({ app, owner } = shop)
      const { tables } = await owner.must('GET', `${shop.at}/schema?full=1`)
      assert.ok(JSON.stringify(tables).includes('canary_note'), 'the schema holds a hidden column')
      assert.equal((await shop.run('profile')).state, 'DONE')
    })
    after(async () => {
      await app[Symbol.asyncDispose]()
      await shop[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    })

    const ask = (full = false): Promise<Answer> =>
      full ? owner.ask('GET', `${shop.at}/schema?full=1`) : app.ask('GET', `${shop.at}/schema`, { token: shop.key })

    async function restart(): Promise<void> {
      await app[Symbol.asyncDispose]()
      app = await startApp({ env })
      owner = await app.signIn(owner.email)
    }

    test('after a restart, the description is the same for members and for managers, byte for byte', async () => {
      const before = [await ask(), await ask(true)]
      await restart()
      const after = [await ask(), await ask(true)]
      for (const n of [0, 1]) {
        assert.equal(after[n]?.status, 200)
        assert.equal(after[n]?.text, before[n]?.text)
        assert.equal(after[n]?.headers.get('etag'), before[n]?.headers.get('etag'))
      }
      const headers = { 'if-none-match': after[0]?.headers.get('etag') ?? '' }
      assert.equal((await app.ask('GET', `${shop.at}/schema`, { token: shop.key, headers })).status, 304)
    })

    test('after each change, the first answer has the new description and a new ETag', async () => {
      const seen = new Map<string, string>()
      const expectChange = async (
        what: string,
        change: () => Promise<unknown>,
        isExpected: (text: string) => boolean,
      ) => {
        await change()
        const answer = await ask()
        assert.ok(isExpected(answer.text), what)
        const etag = answer.headers.get('etag') ?? ''
        assert.ok(!seen.has(etag), what)
        seen.set(etag, answer.text)
        const full = await ask(true)
        const fullTag = full.headers.get('etag') ?? ''
        assert.equal(seen.get(fullTag) ?? full.text, full.text, `${what}, for managers`)
        seen.set(fullTag, full.text)
        assert.ok(!answer.text.toLowerCase().includes(CANARY.toLowerCase()), what)
      }
      const publish = () => owner.must('POST', `${shop.at}/documentation/publish`)
      const document = (body: object) => owner.must('PUT', `${shop.at}/documentation/public/orders`, body)
      const expose = (tables: readonly object[]) => owner.must('PUT', `${shop.at}/exposure`, { tables })
      const [first, ...others] = EXPOSED
      await expectChange(
        'no change',
        async () => undefined,
        (text) => text.includes('"country"'),
      )
      const fewer = [{ ...first, columns: ['id', 'name'] }, ...others]
      await expectChange(
        'a narrower exposure',
        () => expose(fewer),
        (text) => !text.includes('"country"'),
      )
      await expectChange(
        'the former exposure',
        () => expose(EXPOSED),
        (text) => text.includes('"country"'),
      )
      assert.match((await ask()).text, /"value":"paid"/)
      const mark = () => document({ columns: { status: { personal: true } } })
      await expectChange('a personal mark', mark, (text) => !text.includes('"value":"paid"'))
      await expectChange(
        'a publication',
        async () => {
          await document({ summary: { text: 'What was bought.', restsOn: [] } })
          await publish()
        },
        (text) => text.includes('What was bought.'),
      )
      const rename = () => owner.must('PATCH', shop.at, { name: 'the other shop' })
      await expectChange('a new name', rename, (text) => text.includes('"name":"the other shop"'))
      await shop.sql('ALTER TABLE doomed ALTER COLUMN note TYPE varchar(12)')
      const introspect = () => owner.must('POST', `${shop.at}/introspect`)
      await expectChange('an introspection', introspect, (text) => text.includes('varying(12)'))
      const { profileCapturedAt } = (await ask()).json
      const profile = async () => {
        const { jobId } = await owner.must('POST', `${shop.at}/profile`, {})
        let job = await owner.must('GET', `${shop.at}/jobs/${jobId}`)
        while (job.state === 'RUNNING') job = await owner.must('GET', `${shop.at}/jobs/${jobId}`)
        assert.equal(job.state, 'DONE')
      }
      await expectChange('a profile', profile, (text) => !text.includes(profileCapturedAt))
      const last = await ask()
      await restart()
      assert.equal((await ask()).text, last.text, 'step-by-step updates and a fresh build give the same text')
    })
  })
}
