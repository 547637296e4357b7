import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { codesOf, openapi } from './openapi.ts'
import type { Route } from './route-type.ts'
import { ROUTES } from './key-routes.ts'
import { SESSION_ROUTES } from './signed-in-routes.ts'
import { STATUS } from '../errors.ts'

const TABLE: Readonly<Record<string, Route>> = { ...ROUTES, ...SESSION_ROUTES }
const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))

test('openapi.json is up to date (npm run openapi)', () => {
  assert.deepEqual(document, JSON.parse(JSON.stringify(openapi(TABLE))))
})

test('openapi.json is OpenAPI 3.1, for interface version 1.0.0', () => {
  assert.equal(document.info.version, '1.0.0')
  assert.match(document.openapi, /^3\.1\./)
})

test('every reference in openapi.json has a schema', () => {
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? '')
  assert.ok(refs.length > 0)
  for (const ref of refs) {
    const name = /^#\/components\/schemas\/(\w+)$/.exec(ref)?.[1]
    assert.ok(name !== undefined && name in document.components.schemas, ref)
  }
})

test('every integer is a count, size, time, port or position, so its minimum is 0 or more', () => {
  const below: string[] = []
  const look = (node: unknown, path: string): void => {
    if (typeof node !== 'object' || node === null) return
    if ('type' in node && [node.type].flat().includes('integer')) {
      if (!('minimum' in node) || typeof node.minimum !== 'number' || node.minimum < 0) below.push(path)
    }
    for (const [name, inner] of Object.entries(node)) look(inner, `${path}/${name}`)
  }
  look(document, '')
  assert.deepEqual(below, [])
})

test('every operation lists its error codes by status', () => {
  for (const [id, route] of Object.entries(TABLE)) {
    const operation = document.paths[route.path][route.method.toLowerCase()]
    assert.equal(operation.operationId, id)
    for (const code of codesOf(route)) assert.match(operation.responses[STATUS[code]].description, new RegExp(code))
  }
})

test('exactly the five operations in key-routes.ts accept an API key', () => {
  const keyed = Object.values<Record<string, { operationId?: string; security: object[] }>>(document.paths)
    .flatMap((path) => Object.values(path))
    .filter((operation) => operation.security.some((each) => 'apiKey' in each))
    .map((operation) => operation.operationId)
  assert.deepEqual(keyed.sort(), Object.keys(ROUTES).sort())
})
