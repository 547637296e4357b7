// Introspects a PostgreSQL database by pg_catalog: the tables that the login may select from, and the types, extensions
// and schemas that the guard needs. It reads no rows of tables.
import { AppError } from '../../../errors.ts'
import { LABELS_MAX, type Catalog } from '../../driver.ts'
import { isTrueAt, numberAt, textAt, type Ask } from './run-catalog-query.ts'
import { CAPTURE_VERSION, type CapturedExtension, type PostgresCapture } from '../captured-facts.ts'
import { digestSql, type Scope } from './implicit-objects.ts'
import { readTypes, type ReadTypes } from './captured-types.ts'
import * as queries from './catalog-queries.ts'
import { catalogTables, type CatalogRows } from './catalog-tables.ts'
import { readExtensions, taintedTypes, trustedSchemas, userMade, type UserMade } from './trusted-extensions.ts'
import { viewFunctions, viewRelations, views, viewWarnings } from './view-warnings.ts'

/** The oldest server version that the guard was tested on. */
export const OLDEST_SERVER = 140000

/** The number of queries of introspect(). Each query is one step of its progress. */
export const INTROSPECTION_QUERIES = 29

/** The facts about the server and the login. Other queries depend on them. */
export interface ServerFacts {
  readonly version: number
  readonly database: string
  readonly isSuperuser: boolean
  readonly searchPath: readonly string[]
  readonly comparesByIcu: boolean
}

export async function readServer(ask: Ask, signal: AbortSignal): Promise<ServerFacts> {
  const [row] = await ask(queries.server, signal)
  if (row === undefined) throw new AppError('DATASOURCE_UNAVAILABLE', 'The server does not know who is asking.')
  const path: unknown = JSON.parse(textAt(row, 3))
  return {
    version: numberAt(row, 0),
    database: textAt(row, 1),
    isSuperuser: isTrueAt(row, 2),
    searchPath: Array.isArray(path) ? path.filter((name) => typeof name === 'string').filter(isOrdinarySchema) : [],
    comparesByIcu: isTrueAt(row, 4),
  }
}

function isOrdinarySchema(name: string): boolean {
  return !name.startsWith('pg_')
}

/** Returns the version as people write it: "14" or "9.6". */
export function versionName(version: number): string {
  const major = Math.trunc(version / 10000)
  return major >= 10 ? String(major) : `${major}.${Math.trunc(version / 100) % 100}`
}

/**
 * Reads the tables that the login may select from, and all that the guard needs. Throws AppError DATASOURCE_UNAVAILABLE
 * for a server older than 14, for a user-defined object that any query could run, and if the extensions change
 * meanwhile.
 */
export async function introspect(ask: Ask, signal: AbortSignal): Promise<Catalog> {
  const server = await readServer(ask, signal)
  if (server.version < OLDEST_SERVER) {
    const name = versionName(server.version)
    throw new AppError(
      'DATASOURCE_UNAVAILABLE',
      `This server is PostgreSQL ${name}; 14 is the oldest that can be used.`,
    )
  }
  const { capture, types } = await readCapture(ask, server, signal)
  const rows = await readRows(ask, server, signal)
  const tables = await catalogTables(rows, types, server.searchPath)
  return { capturedAt: new Date().toISOString(), tables, capture }
}

/**
 * Reads the digest before the objects in it: if they change in between, a later query finds another digest. Throws
 * AppError DATASOURCE_UNAVAILABLE if the extensions change meanwhile.
 */
async function readCapture(
  ask: Ask,
  server: ServerFacts,
  signal: AbortSignal,
): Promise<{ readonly capture: PostgresCapture; readonly types: ReadTypes }> {
  const scope = await readScope(ask, signal)
  const digest = textAt((await ask(digestSql(scope), signal))[0] ?? [], 0)
  const extensions = readExtensions(await ask(queries.extensions, signal), await ask(queries.extensionMembers, signal))
  const schemas = trustedSchemas(extensions, await ask(queries.extensionSchemas, signal))
  if (String(schemas) !== String(scope.schemas) || String(trustedNames(extensions)) !== String(scope.extensions)) {
    throw new AppError(
      'DATASOURCE_UNAVAILABLE',
      'The extensions of the database changed during introspection. Introspect it again when no extension is being changed.',
    )
  }
  const made = await readMade(ask, extensions, signal)
  const rows = {
    types: await ask(queries.userTypes, signal),
    attributes: await ask(queries.compositeAttributes, signal),
    support: await ask(queries.typeSupport, signal),
    checks: await ask(queries.checkCalls, signal),
    ranges: await ask(queries.ranges, signal),
  }
  const types = readTypes(rows, extensions, (isBuiltIn) => taintedTypes(made, isBuiltIn))
  return {
    types,
    capture: {
      version: CAPTURE_VERSION,
      serverVersion: server.version,
      database: server.database,
      searchPath: server.searchPath,
      trustedSchemas: schemas,
      extensions: [...extensions.values()],
      types: types.types,
      implicit: { ...scope, digest },
      comparesByIcu: server.comparesByIcu,
    },
  }
}

async function readScope(ask: Ask, signal: AbortSignal): Promise<Scope> {
  const extensions = readExtensions(await ask(queries.extensions, signal), [])
  return {
    extensions: trustedNames(extensions),
    schemas: trustedSchemas(extensions, await ask(queries.extensionSchemas, signal)),
    judged: [
      ...(await ask(queries.userCasts, signal)).map((row) => numberAt(row, 6)),
      ...(await ask(queries.userOperatorClasses, signal)).map((row) => numberAt(row, 5)),
    ],
    typesUpTo: numberAt((await ask(queries.lastType, signal))[0] ?? [], 0),
  }
}

function trustedNames(extensions: ReadonlyMap<number, CapturedExtension>): string[] {
  return [...extensions.values()].filter(({ trusted }) => trusted).map(({ name }) => name)
}

/** Reads the user-defined casts, operator classes and objects in pg_catalog that no trusted extension owns. */
export async function readMade(
  ask: Ask,
  extensions: ReadonlyMap<number, CapturedExtension>,
  signal: AbortSignal,
): Promise<UserMade[]> {
  return userMade(extensions, {
    casts: await ask(queries.userCasts, signal),
    classes: await ask(queries.userOperatorClasses, signal),
    builtIns: await ask(queries.userBuiltIns, signal),
  })
}

async function readRows(ask: Ask, server: ServerFacts, signal: AbortSignal): Promise<CatalogRows> {
  const relations = await ask(viewRelations, signal)
  return {
    tables: await ask(queries.tables, signal),
    columns: await ask(queries.columns(server.version), signal),
    primaryKeys: await ask(queries.primaryKeys, signal),
    foreignKeys: await ask(queries.foreignKeys(server.version), signal),
    targets: await ask(queries.foreignKeyTargets, signal),
    children: await ask(queries.children, signal),
    viewRelations: relations,
    enumLabels: await ask(queries.enumLabels(LABELS_MAX), signal),
    checks: await ask(queries.columnChecks(server.version), signal),
    warnings: viewWarnings({
      views: await ask(views, signal),
      relations,
      functions: await ask(viewFunctions, signal),
    }),
  }
}
