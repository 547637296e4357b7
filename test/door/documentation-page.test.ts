// Runs the commands of docs/documentation.md on the demo, unchanged and in one shell. Only the address and the printed
// password are filled in.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { openDemo } from '../../src/demo.ts'
import { follow } from '../support/follow-docs-page.ts'
import { startApp } from '../support/app.ts'

const PAGE = readFileSync(new URL('../../docs/documentation.md', import.meta.url), 'utf8')

test('the commands of docs/documentation.md work on the demo with curl alone', async () => {
  await using app = await startApp()
  const place = { address: app.url, dataDir: app.dataDir, setupToken: null, asksMail: false, isNew: true }
  await using demo = await openDemo({ ...place, say: assert.fail, signal: new AbortController().signal })
  const password = /with the password (\S+),/.exec(demo?.story ?? '')?.[1]
  assert.ok(password)
  const blocks = [...PAGE.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1] ?? '')
  const commands = blocks.map((block) =>
    block.replace('http://127.0.0.1:3000', app.url).replace('the printed password', password),
  )
  assert.equal(commands.join('').split(password).length, 2)
  const outputs = await follow(commands)
  const [, profiled, marked, proposed, judged, published, narrower] = outputs
  assert.match(profiled ?? '', /"state":"DONE".*"tables":10/)
  assert.match(marked ?? '', /"channel":\{"personal":true\}/)
  assert.match(proposed ?? '', /"state":"DONE".*“returned” or “shipped”/s)
  assert.ok(!proposed?.includes('“web”'))
  assert.match(judged ?? '', /"origin":"GENERATED","status":"ACCEPTED".*"warnings":\[\]/)
  assert.match(published ?? '', /"publishedAt":.*"summary":"One row per order, cancelled ones too\."/s)
  assert.match(published ?? '', /“returned” or “shipped”\.","Leave out cancelled orders for turnover\."\]/)
  assert.match(published ?? '', /"description":"Where it was ordered\."/)
  assert.match(narrower ?? '', /"statements":\[\]/)
  assert.ok(!narrower?.includes('Where it was ordered'))
  assert.ok(!outputs.join('').includes('"code":"'), outputs.join('\n'))
})
