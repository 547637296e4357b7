// A passkey authenticator in software, for tests of the service. It answers the WebAuthn options of a page like a
// browser, or with one mistake that the test chooses.
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'

export interface SoftPasskey {
  readonly id: string
  readonly userHandle: string
  readonly rpId: string
  readonly key: KeyObject
  counter: number
}

interface Wrong {
  /** The page that the browser shows. */
  readonly origin?: string
  readonly rpId?: string
  /** The authenticator did not verify the person. */
  readonly unverified?: boolean
  readonly userHandle?: string
  readonly counter?: number
  readonly key?: KeyObject
  readonly challenge?: string
}

interface CreationOptions {
  readonly challenge: string
  readonly rp: { readonly id: string }
  readonly user: { readonly id: string }
}

const PRESENT = 1
const VERIFIED = 4
const WITH_KEY = 0x40

/** Creates a passkey on the page at `origin`. Returns the passkey, and the result of navigator.credentials.create(). */
export function createPasskey(origin: string, options: CreationOptions, wrong: Wrong = {}) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const id = randomBytes(32)
  const rpId = wrong.rpId ?? options.rp.id
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  const cose = cbor(
    new Map<number, unknown>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x, 'base64url')],
      [-3, Buffer.from(y, 'base64url')],
    ]),
  )
  const length = Buffer.alloc(2)
  length.writeUInt16BE(id.length)
  const authData = Buffer.concat([head(rpId, WITH_KEY, 0, wrong), Buffer.alloc(16), length, id, cose])
  const attestation = new Map<string, unknown>([
    ['fmt', 'none'],
    ['attStmt', new Map()],
    ['authData', authData],
  ])
  const response = {
    clientDataJSON: clientData('webauthn.create', wrong.challenge ?? options.challenge, wrong.origin ?? origin),
    attestationObject: cbor(attestation).toString('base64url'),
    transports: ['internal', 'a transport of the future'],
  }
  const passkey: SoftPasskey = {
    id: id.toString('base64url'),
    userHandle: options.user.id,
    rpId: options.rp.id,
    key: privateKey,
    counter: 0,
  }
  return { passkey, credential: { ...credentialOf(passkey.id), response } }
}

/** Returns the result of navigator.credentials.get() on the page at `origin`. */
export function signWith(passkey: SoftPasskey, origin: string, challenge: string, wrong: Wrong = {}) {
  const counter = wrong.counter ?? ++passkey.counter
  const authenticatorData = head(wrong.rpId ?? passkey.rpId, 0, counter, wrong)
  const clientDataJSON = clientData('webauthn.get', wrong.challenge ?? challenge, wrong.origin ?? origin)
  const hashed = createHash('sha256').update(Buffer.from(clientDataJSON, 'base64url')).digest()
  const signature = sign('sha256', Buffer.concat([authenticatorData, hashed]), wrong.key ?? passkey.key)
  return {
    ...credentialOf(passkey.id),
    response: {
      clientDataJSON,
      authenticatorData: authenticatorData.toString('base64url'),
      signature: signature.toString('base64url'),
      userHandle: wrong.userHandle ?? passkey.userHandle,
    },
  }
}

function credentialOf(id: string) {
  const more = { authenticatorAttachment: 'platform', clientExtensionResults: { credProps: { rk: true } } }
  return { id, rawId: id, type: 'public-key', ...more }
}

function clientData(type: string, challenge: string, origin: string): string {
  return Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false })).toString('base64url')
}

function head(rpId: string, flags: number, counter: number, wrong: Wrong): Buffer {
  const rest = Buffer.alloc(5)
  rest.writeUInt8(PRESENT | flags | (wrong.unverified === true ? 0 : VERIFIED))
  rest.writeUInt32BE(counter, 1)
  return Buffer.concat([createHash('sha256').update(rpId).digest(), rest])
}

/** Writes the part of CBOR that authenticators use. */
function cbor(value: unknown): Buffer {
  if (typeof value === 'number') return value >= 0 ? start(0, value) : start(1, -1 - value)
  if (typeof value === 'string') return Buffer.concat([start(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([start(2, value.length), value])
  if (value instanceof Map)
    return Buffer.concat([start(5, value.size), ...[...value].flat().map((each: unknown) => cbor(each))])
  throw new Error('an authenticator does not write this')
}

function start(major: number, count: number): Buffer {
  if (count < 24) return Buffer.from([(major << 5) | count])
  return count < 256
    ? Buffer.from([(major << 5) | 24, count])
    : Buffer.from([(major << 5) | 25, count >> 8, count & 255])
}
