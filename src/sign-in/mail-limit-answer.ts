// The answer to a request beyond the limit of mails for an e-mail address. No mail is sent, but the answer is the same
// as for other requests, so that it does not reveal the limit.
import { randomUUID } from 'node:crypto'
import { SignUp } from '../contract/sign-in-routes.ts'
import type { SignInRequest } from './read-request.ts'
import type { Library } from './sign-in-library.ts'
import { SIGN_UP } from './allowed-paths.ts'

const RESET_ANSWER = 'If this email exists in our system, check your email for the reset link'

export async function unsent(library: Library, input: SignInRequest, now: number): Promise<Response> {
  if (input.name === 'POST /auth/request-password-reset') {
    return Response.json({ status: true, message: RESET_ANSWER })
  }
  if (input.name !== SIGN_UP) return Response.json({ status: true })
  const { name, email, password } = SignUp.parse(input.body)
  // Computes the hash so that this takes as long as a real sign-up.
  await library.hashPassword(password)
  const at = new Date(now).toISOString()
  const user = { name, email: email.toLowerCase(), emailVerified: false, image: null, createdAt: at, updatedAt: at }
  return Response.json({ token: null, user: { ...user, twoFactorEnabled: false, id: randomUUID() } })
}
