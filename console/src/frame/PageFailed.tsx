// This component replaces a page that failed. A page fails if the service does not answer, if the service returns an
// error, or if the page has a defect.
import { useRouter, type ErrorComponentProps } from '@tanstack/react-router'
import { RotateCw } from 'lucide-react'
import { sentenceOf, Unreachable } from '../api/failure.ts'
import { Button } from '../parts/Button.tsx'
import { Notice } from '../parts/Notice.tsx'
import { CardPage } from './CardPage.tsx'

export function PageFailed({ error, reset }: ErrorComponentProps) {
  const router = useRouter()
  const again = () => {
    reset()
    void router.invalidate()
  }
  const title = error instanceof Unreachable ? 'The service does not answer' : 'This page failed'
  return (
    <CardPage title={title}>
      <Notice tone="bad">
        {error instanceof Unreachable ? 'Check your connection, then try again.' : sentenceOf(error)}
      </Notice>
      <Button look="primary" icon={RotateCw} onClick={again}>
        Try again
      </Button>
    </CardPage>
  )
}
