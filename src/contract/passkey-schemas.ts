// The JSON of passkeys (WebAuthn Level 3). In the browser, PublicKeyCredential.toJSON() writes it, and
// parseCreationOptionsFromJSON() and parseRequestOptionsFromJSON() read it. Binary values are base64url. Unknown fields
// are dropped, because browsers add fields as the standard grows.
import { z } from 'zod'

const bytes = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[\w-]*$/)
const ID = bytes(2_000)
const KEY = z.literal('public-key')
const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'] as const

const Credential = { id: ID, rawId: ID, type: KEY, clientExtensionResults: z.object({}) }

/** The result of navigator.credentials.create(). */
export const PasskeyCreated = z.object({
  ...Credential,
  response: z.object({
    clientDataJSON: bytes(10_000),
    attestationObject: bytes(50_000),
    transports: z
      .array(z.string().max(50))
      .max(20)
      .transform((given) => TRANSPORTS.filter((known) => given.includes(known)))
      .exactOptional(),
  }),
})

/** The result of navigator.credentials.get(). */
export const PasskeyAssertion = z.object({
  ...Credential,
  response: z.object({
    clientDataJSON: bytes(10_000),
    authenticatorData: bytes(10_000),
    signature: bytes(2_000),
    userHandle: bytes(200).exactOptional(),
  }),
})

/** The COSE numbers of EdDSA, ES256 and RS256. */
export const ALGORITHMS = [-8, -7, -257] as const
const NEED = z.enum(['required', 'preferred', 'discouraged'])
const Descriptor = z.object({ id: z.string(), type: KEY, transports: z.array(z.string()).optional() })

export const PasskeyCreation = z.object({
  challenge: z.string(),
  rp: z.object({ id: z.string(), name: z.string() }),
  user: z.object({ id: z.string(), name: z.string(), displayName: z.string() }),
  pubKeyCredParams: z.array(z.object({ type: KEY, alg: z.literal(ALGORITHMS) })),
  timeout: z.int().min(0),
  excludeCredentials: z.array(Descriptor),
  authenticatorSelection: z.object({
    residentKey: NEED,
    requireResidentKey: z.boolean(),
    userVerification: NEED,
  }),
  attestation: z.literal('none'),
})

export const PasskeyRequest = z.object({
  challenge: z.string(),
  rpId: z.string(),
  timeout: z.int().min(0),
  userVerification: NEED,
})
