import type { PolicyEvent } from '#shared/report/event.ts'
import { isEvent } from './check.ts'

/** What a line of a log holds: events, or a fault where something says that it is one and is not. */
export interface LineEvents {
  events: PolicyEvent[]
  unreadable: number
}

/** Members of other people's records in which a line of ours may stand as text, or an event as an object. */
const WRAPPERS = [
  'message',
  '@message',
  'log',
  'MESSAGE',
  'msg',
  'data',
  'detail',
  'events',
  'logs',
]
/** Records in records: a log service around CloudEvents around an event. */
const MAX_WRAPPED = 4

/**
 * The events in one line of a log: a line that the functions wrote, with or without a timestamp before it, an event as a sink got it, a list
 * of these, or any of it inside the record of a log service. Everything else is none of ours.
 */
export function eventsIn(line: string): LineEvents {
  const found: LineEvents = { events: [], unreadable: 0 }
  collectText(line, 0, found)
  return found
}

function collectText(text: string, depth: number, found: LineEvents): void {
  if (!text.includes('policy')) return
  const value = parsed(text)
  if (value !== undefined) collect(value, depth, found)
}

function collect(value: unknown, depth: number, found: LineEvents): void {
  if (depth > MAX_WRAPPED) return
  if (typeof value === 'string') {
    collectText(value, depth + 1, found)
  } else if (Array.isArray(value)) {
    for (const item of value) collect(item, depth + 1, found)
  } else if (isRecord(value) && value.event === 'policy') {
    if (isEvent(value)) found.events.push(value)
    else found.unreadable++
  } else if (isRecord(value)) {
    for (const name of WRAPPERS) {
      if (Object.hasOwn(value, name)) collect(value[name], depth + 1, found)
    }
  }
}

/** The JSON of a text, from its first bracket on, or undefined. */
function parsed(text: string): unknown {
  for (const start of new Set([0, text.indexOf('{'), text.indexOf('[')])) {
    if (start < 0) continue
    try {
      return JSON.parse(text.slice(start))
    } catch {
      // A line of somebody else, or a timestamp in brackets.
    }
  }
  return undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
