// A separate process. Prints which packages for agents are loaded after the start, after a REST call, after a call of a
// tool, and after tools/list.
import { registerHooks } from 'node:module'

const loaded = new Set<string>()
registerHooks({
  load(url, context, next) {
    const [, name] = /node_modules\/(@modelcontextprotocol\/\w+|@better-auth\/oauth-provider)\//.exec(url) ?? []
    if (name !== undefined) loaded.add(name)
    return next(url, context)
  },
})
const { startApp } = await import('./app.ts')
const { Agent } = await import('./agent.ts')
const steps: Record<string, readonly string[]> = {}
const note = (step: string) => (steps[step] = [...loaded].sort())
{
  await using app = await startApp()
  note('start')
  const owner = await app.person('Olga')
  const token = await app.key(owner)
  await app.must('GET', '/users/me', { token })
  note('rest')
  const agent = new Agent(app, token)
  for (const era of ['modern', 'legacy'] as const) await agent.tool('whoami', {}, era)
  note('call')
  await agent.ask('modern', 'tools/list')
  note('list')
}
process.stdout.write(JSON.stringify(steps))
