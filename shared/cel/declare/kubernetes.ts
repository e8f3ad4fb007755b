import { type FunctionDeclaration, fn, member, overload } from '../declarations.ts'

const URL = 'kubernetes.URL'
const QUANTITY = 'kubernetes.Quantity'
const SEMVER = 'kubernetes.Semver'
const FORMAT = 'kubernetes.NamedFormat'
const AUTHORIZER = 'kubernetes.authorization.Authorizer'
const PATH_CHECK = 'kubernetes.authorization.PathCheck'
const GROUP_CHECK = 'kubernetes.authorization.GroupCheck'
const RESOURCE_CHECK = 'kubernetes.authorization.ResourceCheck'
const DECISION = 'kubernetes.authorization.Decision'
const IP = 'net.IP'
const CIDR = 'net.CIDR'

/** Object types of the API server's libraries: values of them have no fields an expression can select. */
export const LIBRARY_TYPES: readonly string[] = [URL, QUANTITY, SEMVER, FORMAT]
export const AUTHORIZER_TYPES: readonly string[] = [
  AUTHORIZER,
  PATH_CHECK,
  GROUP_CHECK,
  RESOURCE_CHECK,
  DECISION,
]
/** Opaque types of the network libraries. */
export const NETWORK_TYPES: readonly string[] = [IP, CIDR]

export const URL_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('url', overload('string_to_url', ['string'], URL)),
  fn('isURL', overload('is_url_string', ['string'], 'bool')),
  fn('getScheme', member('url_get_scheme', [URL], 'string')),
  fn('getHost', member('url_get_host', [URL], 'string')),
  fn('getHostname', member('url_get_hostname', [URL], 'string')),
  fn('getPort', member('url_get_port', [URL], 'string')),
  fn('getEscapedPath', member('url_get_escaped_path', [URL], 'string')),
  fn('getQuery', member('url_get_query', [URL], 'map(string, list(string))')),
]

export const REGEX_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('find', member('string_find_string', ['string', 'string'], 'string')),
  fn(
    'findAll',
    member('string_find_all_string', ['string', 'string'], 'list(string)'),
    member('string_find_all_string_int', ['string', 'string', 'int'], 'list(string)'),
  ),
]

const SUMMABLE = ['int', 'uint', 'double', 'duration'] as const
const COMPARABLE = [...SUMMABLE.slice(0, 3), 'bool', 'duration', 'timestamp', 'string', 'bytes']

/** The API server's list library; `includes` is in version 1. */
export function listLibraryFunctions(version: 0 | 1): readonly FunctionDeclaration[] {
  const each = (types: readonly string[], id: (type: string) => string, result?: string) =>
    types.map((type) => member(id(type), [`list(${type})`], result ?? type))
  return [
    fn('isSorted', ...each(COMPARABLE, (type) => `list_${type}_is_sorted_bool`, 'bool')),
    fn('sum', ...each(SUMMABLE, (type) => `list_${type}_sum_${type}`)),
    fn('max', ...each(COMPARABLE, (type) => `list_${type}_max_${type}`)),
    fn('min', ...each(COMPARABLE, (type) => `list_${type}_min_${type}`)),
    fn('indexOf', member('list_a_index_of_int', ['list(A)', 'A'], 'int')),
    fn('lastIndexOf', member('list_a_last_index_of_int', ['list(A)', 'A'], 'int')),
    ...(version < 1
      ? []
      : [fn('includes', member('list_includes_dyn_dyn', ['dyn', 'dyn'], 'bool'))]),
  ]
}

export const QUANTITY_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('quantity', overload('string_to_quantity', ['string'], QUANTITY)),
  fn('isQuantity', overload('is_quantity_string', ['string'], 'bool')),
  fn('sign', overload('quantity_sign', [QUANTITY], 'int')),
  fn('isGreaterThan', member('quantity_is_greater_than', [QUANTITY, QUANTITY], 'bool')),
  fn('isLessThan', member('quantity_is_less_than', [QUANTITY, QUANTITY], 'bool')),
  fn('compareTo', member('quantity_compare_to', [QUANTITY, QUANTITY], 'int')),
  fn('asApproximateFloat', member('quantity_get_float', [QUANTITY], 'double')),
  fn('asInteger', member('quantity_get_int', [QUANTITY], 'int')),
  fn('isInteger', member('quantity_is_integer', [QUANTITY], 'bool')),
  fn(
    'add',
    member('quantity_add', [QUANTITY, QUANTITY], QUANTITY),
    member('quantity_add_int', [QUANTITY, 'int'], QUANTITY),
  ),
  fn(
    'sub',
    member('quantity_sub', [QUANTITY, QUANTITY], QUANTITY),
    member('quantity_sub_int', [QUANTITY, 'int'], QUANTITY),
  ),
]

/** IP addresses. */
export const IP_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('ip', overload('string_to_ip', ['string'], IP)),
  fn('isIP', overload('is_ip', ['string'], 'bool')),
  fn('ip.isCanonical', overload('ip_is_canonical', ['string'], 'bool')),
  fn('family', member('ip_family', [IP], 'int')),
  fn('isUnspecified', member('ip_is_unspecified', [IP], 'bool')),
  fn('isLoopback', member('ip_is_loopback', [IP], 'bool')),
  fn('isLinkLocalMulticast', member('ip_is_link_local_multicast', [IP], 'bool')),
  fn('isLinkLocalUnicast', member('ip_is_link_local_unicast', [IP], 'bool')),
  fn('isGlobalUnicast', member('ip_is_global_unicast', [IP], 'bool')),
  fn('string', overload('ip_to_string', [IP], 'string')),
]

/** IP networks. */
export const CIDR_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('cidr', overload('string_to_cidr', ['string'], CIDR)),
  fn('isCIDR', overload('is_cidr', ['string'], 'bool')),
  fn(
    'containsIP',
    member('cidr_contains_ip_string', [CIDR, 'string'], 'bool'),
    member('cidr_contains_ip_ip', [CIDR, IP], 'bool'),
  ),
  fn(
    'containsCIDR',
    member('cidr_contains_cidr_string', [CIDR, 'string'], 'bool'),
    member('cidr_contains_cidr', [CIDR, CIDR], 'bool'),
  ),
  fn('ip', member('cidr_ip', [CIDR], IP)),
  fn('prefixLength', member('cidr_prefix_length', [CIDR], 'int')),
  fn('masked', member('cidr_masked', [CIDR], CIDR)),
  fn('string', overload('cidr_to_string', [CIDR], 'string')),
]

/** What cel-go's own network library has besides. */
export const CIDR_MASK_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('isMask', member('cidr_is_mask', [CIDR], 'bool')),
]

/** The named string formats, in the API server's spelling. */
export const FORMAT_NAMES = [
  'dns1123Label',
  'dns1123Subdomain',
  'dns1035Label',
  'qualifiedName',
  'dns1123LabelPrefix',
  'dns1123SubdomainPrefix',
  'dns1035LabelPrefix',
  'labelValue',
  'uri',
  'uuid',
  'byte',
  'date',
  'datetime',
] as const

export const FORMAT_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('format.named', overload('format-named', ['string'], `optional_type(${FORMAT})`)),
  fn('validate', member('format-validate', [FORMAT, 'string'], 'optional_type(list(string))')),
  ...FORMAT_NAMES.map((name) => fn(`format.${name}`, overload(`format.${name}`, [], FORMAT))),
]

/** Semantic versions; version 1 takes the `normalize` argument. */
export const SEMVER_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn(
    'semver',
    overload('string_to_semver', ['string'], SEMVER),
    overload('string_bool_to_semver', ['string', 'bool'], SEMVER),
  ),
  fn(
    'isSemver',
    overload('is_semver_string', ['string'], 'bool'),
    overload('is_semver_string_bool', ['string', 'bool'], 'bool'),
  ),
  fn('isGreaterThan', member('semver_is_greater_than', [SEMVER, SEMVER], 'bool')),
  fn('isLessThan', member('semver_is_less_than', [SEMVER, SEMVER], 'bool')),
  fn('compareTo', member('semver_compare_to', [SEMVER, SEMVER], 'int')),
  fn('major', member('semver_major', [SEMVER], 'int')),
  fn('minor', member('semver_minor', [SEMVER], 'int')),
  fn('patch', member('semver_patch', [SEMVER], 'int')),
]

/** Checks against the cluster's authorizer. */
export const AUTHORIZER_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('path', member('authorizer_path', [AUTHORIZER, 'string'], PATH_CHECK)),
  fn('group', member('authorizer_group', [AUTHORIZER, 'string'], GROUP_CHECK)),
  fn(
    'serviceAccount',
    member('authorizer_serviceaccount', [AUTHORIZER, 'string', 'string'], AUTHORIZER),
  ),
  fn('resource', member('groupcheck_resource', [GROUP_CHECK, 'string'], RESOURCE_CHECK)),
  fn(
    'subresource',
    member('resourcecheck_subresource', [RESOURCE_CHECK, 'string'], RESOURCE_CHECK),
  ),
  fn('namespace', member('resourcecheck_namespace', [RESOURCE_CHECK, 'string'], RESOURCE_CHECK)),
  fn('name', member('resourcecheck_name', [RESOURCE_CHECK, 'string'], RESOURCE_CHECK)),
  fn(
    'check',
    member('pathcheck_check', [PATH_CHECK, 'string'], DECISION),
    member('resourcecheck_check', [RESOURCE_CHECK, 'string'], DECISION),
  ),
  fn('errored', member('decision_errored', [DECISION], 'bool')),
  fn('error', member('decision_error', [DECISION], 'string')),
  fn('allowed', member('decision_allowed', [DECISION], 'bool')),
  fn('reason', member('decision_reason', [DECISION], 'string')),
]

/** Selectors of an authorizer check. */
export const AUTHORIZER_SELECTOR_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn(
    'fieldSelector',
    member('authorizer_fieldselector', [RESOURCE_CHECK, 'string'], RESOURCE_CHECK),
  ),
  fn(
    'labelSelector',
    member('authorizer_labelselector', [RESOURCE_CHECK, 'string'], RESOURCE_CHECK),
  ),
]

/** With mutating admission policies. */
export const JSON_PATCH_FUNCTIONS: readonly FunctionDeclaration[] = [
  fn('jsonpatch.escapeKey', overload('string_jsonpatch_escapeKey_string', ['string'], 'string')),
]
