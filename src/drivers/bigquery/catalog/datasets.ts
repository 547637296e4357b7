// A job runs in one location and cannot read other locations. So all datasets of a datasource must be in one location.
import { z } from 'zod'
import { mapConcurrently } from '../session/abortable.ts'
import { Unreadable } from '../session/http-exchange.ts'
import { unavailable } from '../session/failure.ts'
import { ErrorResponse } from '../session/error-response.ts'
import type { Rest } from '../session/rest.ts'
import type { Target } from '../session/settings.ts'
import { readPages } from './list-pages.ts'

const DATASETS_MAX = 1_000
const AT_ONCE = 8
/** BigQuery's default location. */
const USUAL_LOCATION = 'US'

export interface Dataset {
  readonly id: string
  /** In BigQuery's spelling, for example EU or us-central1. Null if the response has no valid location. */
  readonly location: string | null
  readonly isCaseInsensitive: boolean
}

const Id = z.string().regex(/^\w{1,1024}$/)
const Location = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,64}$/)
  .optional()
  .catch(undefined)
const Listed = z.object({ datasetReference: z.object({ datasetId: Id }) })
const Read = z.object({ location: Location, isCaseInsensitive: z.boolean().optional().catch(undefined) })

/** Returns at most `max` datasets that the credentials can see. */
export async function listDatasets(rest: Rest, project: string, max: number, signal: AbortSignal): Promise<string[]> {
  const path = ['projects', project, 'datasets']
  // A set, because two pages may both contain a dataset that was created between them.
  const ids = new Set<string>()
  for await (const item of readPages(rest, { path, key: 'datasets', pageMax: Math.min(max, 1000) }, signal)) {
    const listed = Listed.safeParse(item)
    if (listed.success) ids.add(listed.data.datasetReference.datasetId)
    if (ids.size >= max) break
  }
  return [...ids]
}

/** Throws ErrorResponse if the dataset does not exist or is not visible. */
async function readDataset(rest: Rest, project: string, id: string, signal: AbortSignal): Promise<Dataset> {
  const read = Read.safeParse(await rest.json({ method: 'GET', path: ['projects', project, 'datasets', id] }, signal))
  if (!read.success) throw new Unreadable('an invalid dataset')
  return { id, location: read.data.location ?? null, isCaseInsensitive: read.data.isCaseInsensitive ?? false }
}

/**
 * Returns the datasets to introspect, and their location. Throws AppError DATASOURCE_UNAVAILABLE if there are too many
 * datasets, or if they have several locations and the settings choose none. Also throws it if a dataset of the settings
 * does not exist, is not visible, or is not in the chosen location.
 */
export async function findDatasets(
  rest: Rest,
  target: Target,
  signal: AbortSignal,
): Promise<{ readonly datasets: readonly Dataset[]; readonly location: string }> {
  const isChosen = target.datasets.length > 0
  const ids = isChosen ? target.datasets : await listDatasets(rest, target.project, DATASETS_MAX + 1, signal)
  if (ids.length > DATASETS_MAX) {
    throw unavailable(
      `The project has more than ${DATASETS_MAX} datasets: name the datasets to introspect in config.datasets.`,
    )
  }
  const found = await mapConcurrently(ids, AT_ONCE, signal, (id, ended) => {
    return readDataset(rest, target.project, id, ended).catch((error: unknown) => {
      // The dataset was dropped, or the credentials see only its name.
      if (error instanceof ErrorResponse && /^(notFound|accessDenied)$/.test(error.reason)) {
        if (!isChosen) return null
        throw unavailable(`The dataset ${id} does not exist, or the credentials may not see it.`, error)
      }
      throw error
    })
  })
  return chooseLocation(
    found.filter((each) => each !== null),
    target,
  )
}

function chooseLocation(datasets: readonly Dataset[], { location, datasets: chosen }: Target) {
  const places = [...new Set(datasets.flatMap((each) => each.location ?? []))]
  if (location === null) {
    const [only] = places
    if (places.length <= 1) return { datasets, location: only ?? USUAL_LOCATION }
    throw unavailable(
      `The datasets are in several locations (${few(places)}), and a query reads only one: choose config.location, or config.datasets.`,
    )
  }
  const isHere = (each: Dataset): boolean =>
    each.location === null || each.location.toLowerCase() === location.toLowerCase()
  const elsewhere = datasets.find((each) => !isHere(each))
  if (elsewhere !== undefined && chosen.length > 0) {
    throw unavailable(`The dataset ${elsewhere.id} lies in ${elsewhere.location}, and config.location is ${location}.`)
  }
  return { datasets: datasets.filter(isHere), location }
}

function few(names: readonly string[]): string {
  return names.length > 4 ? `${names.slice(0, 4).join(', ')} …` : names.join(', ')
}
