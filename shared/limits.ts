/**
 * Every bound of the engine: a name, a unit and the reason. Callers take these as they are; a test that needs a
 * smaller bound passes its own value through the option of the same name where the module offers one.
 */

const KIB = 1024
const MIB = 1024 * KIB

/** Review body on Lambda, bytes: a 6 MB event divided by the 1.21 that JSON escaping adds, rounded down. */
export const LAMBDA_MAX_BODY_BYTES = 5_000_000
/** Review body elsewhere, bytes: what controller-runtime accepts. */
export const MAX_BODY_BYTES = 7 * MIB
/** Least that a cluster's own body limit may be, bytes: a plain Pod takes some kilobytes. */
export const MIN_CLUSTER_BODY_BYTES = 64 * KIB
/** Most reviews of one cluster at once that its limit may allow in one isolate: memory is shared with every other cluster. */
export const MAX_CONCURRENT_REVIEWS = 1000
/** Client certificates of one cluster: an API server has a handful, and two each while they are renewed. */
export const MAX_CLIENT_CERTIFICATES = 20
/** How long an API server may keep an answer to an ImageReview, seconds: its own maximum. */
export const MAX_IMAGE_REVIEW_TTL_SECONDS = 1800
/** Nesting of a JSON body, levels: Go's decoder stops at 10,000; no Kubernetes object comes near 500. */
export const MAX_JSON_DEPTH = 500

/** Webhook `?timeout=`, seconds: the API server's own default and maximum. */
export const DEFAULT_TIMEOUT_SECONDS = 10
export const MAX_TIMEOUT_SECONDS = 30
/** Kept back from the deadline to send the answer, milliseconds. */
export const DEADLINE_RESERVE_MS = 300
/** Part of the reserve: what work that was told to stop may still take to say what it knows, milliseconds. */
export const DEADLINE_GRACE_MS = 100
/** The API server rounds `?timeout=` up to a whole second, so up to this much of it may not exist. Milliseconds. */
export const TIMEOUT_ROUNDING_MS = 1000
/** A deadline is never shorter than this: enough to answer from the seal or to say why not. Milliseconds. */
export const MIN_DEADLINE_MS = 150

/** uid, names, group, version, kind or resource of a review, characters: Kubernetes itself stops at 253. */
export const MAX_IDENTIFIER_CHARS = 1024
/** Faults of one review that are kept: a hostile body could have a million. */
export const MAX_FAULTS = 1000
/** Faults of one document that are spelled out in a message; the rest are counted. */
export const MAX_LISTED_FAULTS = 20

/** A warning, characters: longer ones are cut by the API server once 4,096 are used. */
export const MAX_WARNING_CHARS = 256
/** All warnings of one answer, characters. */
export const MAX_WARNINGS_CHARS = 4096
/** A denial message, characters: long enough for every failing policy, short enough for a terminal. */
export const MAX_MESSAGE_CHARS = 16 * KIB
/** The message of one cause of a denial, characters: the whole of it is in the denial message. */
export const MAX_CAUSE_CHARS = 2 * KIB
/** An audit annotation value, characters: the API server's own limit for `auditAnnotations` of a policy. */
export const MAX_AUDIT_VALUE_CHARS = 10 * KIB
/** Bytes that all `copy` operations of one JSON patch may add: the API server's own default. */
export const MAX_PATCH_COPY_BYTES = 3 * MIB

/** Images, and reasons, of one decision that its log line holds: log services cut or refuse a line past 256 KiB. */
export const MAX_RECORDED = 50
/** One text in a log line, characters. */
export const MAX_RECORDED_CHARS = 1024
/** Audit annotations of one policy that an event holds: each with `MAX_RECORDED_CHARS`, so that all of it stays below 256 KiB. */
export const MAX_EVENT_PROPERTIES = 20
/** Events that wait for one sink, about a kilobyte each: a sink that is away must not fill the memory of a function. */
export const MAX_QUEUED_EVENTS = 1000
/** Events of one delivery, unless the config says otherwise. */
export const DEFAULT_EVENT_BATCH = 100
/** `countersign report`: one line of a log, bytes: an event of the largest size inside the JSON of somebody's log shipper. */
export const REPORT_MAX_LINE_BYTES = 2 * MIB
/** `countersign report`: results of one report, about three kilobytes each in memory. */
export const MAX_REPORT_RESULTS = 200_000
/** Entries of one PutEvents call, and their bytes: EventBridge's own bounds. */
export const EVENTBRIDGE_MAX_ENTRIES = 10
export const EVENTBRIDGE_MAX_BYTES = 256 * KIB
/** One delivery to a sink without an answer, milliseconds. */
export const SINK_TIMEOUT_MS = 5000
/** A sink is left alone this long after a delivery failed, milliseconds: the next request must not wait for it again. */
export const SINK_PAUSE_MS = 10_000
/** The answer of a sink that is read, bytes: PutEvents says which entries it took. */
export const MAX_SINK_ANSWER_BYTES = 64 * KIB
/** How long an answer that is ready is held for sinks on Lambda, where nothing runs after it, milliseconds. */
export const EVENT_HOLD_MS = 200

/** Images of one object. A Pod with more is refused: each image costs several outside calls. */
export const MAX_IMAGES = 1000
/** Images of one ImageReview: each stands in all three lists of the Pod that it is decided as. */
export const MAX_REVIEWED_IMAGES = Math.floor(MAX_IMAGES / 3)
/** An image reference, characters (registry host 255 + repository 255 + tag 128 + digest 71 and separators). */
export const MAX_REFERENCE_CHARS = 800

/** CEL: cost of one evaluation, the API server's PerCallLimit. */
export const CEL_PER_CALL_COST = 1_000_000
/** CEL: cost of all evaluations of one policy for one request, the API server's RuntimeCELCostBudget. */
export const CEL_POLICY_COST = 10_000_000
/** CEL: cost of all match conditions of one policy for one request, the API server's matchConditions budget. */
export const CEL_MATCH_CONDITIONS_COST = 2_500_000
/** Match conditions of one webhook or admission policy: the API server's own bound. */
export const MAX_MATCH_CONDITIONS = 64
/** URL of a webhook, characters: API Gateway takes 10,240 bytes of request line and headers, and `?timeout=` is added. */
export const MAX_WEBHOOK_URL_CHARS = 8000
/** Connections to webhooks that an API server keeps for each kind of configuration: those of the least recently called ones are made anew. */
export const WEBHOOK_CLIENTS = 200
/**
 * CEL: work of one evaluation that its cost does not pay for, steps of about a nanosecond. Some calls of cost 1 read a whole
 * text; the API server relies on its deadline there, a synchronous evaluation needs a bound.
 */
export const CEL_MAX_UNPAID_STEPS = 1_000_000_000
/** CEL: source of one expression, code points; cel-go's own parser limit. */
export const CEL_MAX_EXPRESSION_CHARS = 100_000
/** CEL: nesting of one expression; cel-go's own parser limit. */
export const CEL_MAX_RECURSION = 250
/** CEL: nodes of one expression with its macros expanded (optMap copies its target); cel-go's own parser limit. */
export const CEL_MAX_NODES = 100_000
/**
 * CEL: parts of one type. Types are written by inference, not by hand: a map of a value to itself doubles the value's type, and
 * does so once for every level of nesting.
 */
export const CEL_MAX_TYPE_SIZE = 1000
/** CEL: comparisons of types while one expression is checked; the largest real policies need some thousands. */
export const CEL_MAX_TYPE_STEPS = 10_000_000
/** `countersign cel`: programs kept for lines that come again, and the longest text one is kept of, characters: at worst 150 MiB. */
export const CEL_KEPT_PROGRAMS = 500
export const CEL_KEPT_CHARS = 4 * KIB
/** `countersign cel`: one line of input, bytes: a request with both objects of the largest size, and an expression. */
export const CEL_MAX_LINE_BYTES = 16 * MIB
/** `countersign cel`: what `gzip.decompress` may give, bytes. */
export const CEL_MAX_UNPACKED_BYTES = 8 * MIB
/** Passes of one program until its host calls settle: deeper chains of dependent calls are a policy fault. */
export const MAX_SETTLE_ROUNDS = 10
/** Host calls the policies of one request may ask for together: images × attestors of an ordinary large object, doubled. */
export const MAX_HOST_CALLS = 4000

/**
 * All bodies that registries may send for one review, bytes: they are kept until it is answered, and whoever creates a Pod chooses the
 * registries. An ordinary image with its signatures takes 20 KiB.
 */
export const MAX_SESSION_BYTES = 16 * MIB
/** Manifest, bytes: the registry API's own recommendation and notation's limit. */
export const MAX_MANIFEST_BYTES = 4 * MIB
/** Nesting of a manifest, levels: the specification needs six; readers of it may recurse. */
export const MAX_MANIFEST_DEPTH = 64
/** Values in one JSON document of a registry, whatever its length. */
export const MAX_DOCUMENT_VALUES = 100_000
/** Values that any document of a registry may have: more than an ordinary manifest or config has. */
export const MIN_DOCUMENT_VALUES = 1000
/**
 * Bytes of a document of a registry for each further value: real ones have thirty or more. A value takes about sixty bytes of memory, so
 * that four megabytes of `{},{},…` would take eighty.
 */
export const DOCUMENT_BYTES_PER_VALUE = 16
/** Config blob or bundle, bytes. */
export const MAX_BLOB_BYTES = 8 * MIB
/** Signed payload of a cosign layer, bytes: real ones are under 1 KiB. */
export const MAX_PAYLOAD_BYTES = MIB
/** One layer annotation, bytes. */
export const MAX_LAYER_ANNOTATION_BYTES = 64 * KIB
/** Token response of a registry's authorization service, bytes. */
export const MAX_TOKEN_BYTES = 64 * KIB
/** Error body of a registry that is read for its message, bytes. */
export const MAX_ERROR_BYTES = 8 * KIB
/** Types of attestations that a policy lets count as signatures: nobody makes that many. */
export const MAX_PREDICATE_TYPES = 20
/** Layers (signatures) of one `.sig` manifest that are looked at. cosign allows 1,000; nobody signs that often. */
export const MAX_SIGNATURE_LAYERS = 50
/** Referrers of one digest that are looked at. */
export const MAX_REFERRERS = 64
/** Pages of one referrers listing. */
export const MAX_REFERRER_PAGES = 8
/** Signatures tried for one image and attestor before giving up. */
export const MAX_SIGNATURE_ATTEMPTS = 50
/** Candidate signatures of one layout read: the layers of one tag and all referrers, and some lists among these. */
export const MAX_SIGNATURE_READS = 200
/** Candidate signatures of one layout fetched at the same time: leaves room for the other layout below six connections. */
export const SIGNATURE_BATCH = 4
/** Candidate signatures kept with a cached verdict: enough to explain it, small times every cache entry. */
export const MAX_CACHED_CANDIDATES = 10
/** What is said of one candidate signature, characters: a whole identity and its issuer, not all names of a hostile certificate. */
export const MAX_DETAIL_CHARS = 1000
/** Payloads of attestations that one isolate keeps with its verdicts, bytes: a Worker has 128 MiB for everything. */
export const MAX_CACHED_PAYLOAD_BYTES = 8 * MIB
/** Referrers of one artifact type whose own signatures are looked at, for one image and attestor. */
export const MAX_ATTESTED_REFERRERS = 10
/** One decoded signature, bytes: RSA 8192 takes 1,024, everything else less. */
export const MAX_SIGNATURE_BYTES = 2 * KIB
/** A PEM public key of a policy, characters: RSA 8192 takes 1,500. */
export const MAX_KEY_CHARS = 16 * KIB
/** Certificates of one chain, envelope or timestamp token: real ones hold two to four (specs/signatures.md 1.6, 15). */
export const MAX_CERTIFICATES = 10
/** One certificate, DER bytes: real ones take one to three thousand. */
export const MAX_CERTIFICATE_BYTES = 16 * KIB
/** Elements of one DER value that are read as a list: real ones have a dozen, entries of a CRL are gone through one by one. */
export const MAX_DER_ELEMENTS = 1000
/** Extensions of one certificate, and attributes of one name: real ones have a dozen. */
export const MAX_CERTIFICATE_PARTS = 64
/** Certificates of one trust store: the largest public lists have about 150. */
export const MAX_TRUSTED_CERTIFICATES = 200
/** PEM certificates of one trust store, characters. */
export const MAX_TRUST_STORE_CHARS = MIB
/** One text that an expression gives an attestor, characters: a trusted root takes 7 KiB, a certificate 2. */
export const MAX_ATTESTOR_TEXT_CHARS = 64 * KIB
/** Attestors with such texts that one isolate keeps: as many as are asked about again, since each may be as large as they are. */
export const MAX_RESOLVED_ATTESTORS = 100
/** Trusted roots and certificates that one isolate keeps ready to verify: those of a hundred attestors, some of which requests may choose. */
export const MAX_LOADED_TRUSTS = 250
/** Certificate signatures checked while one chain is looked for: cross-signed certificates would branch without end. */
export const MAX_CHAIN_CHECKS = 30
/** A Notary Project envelope, bytes: a full chain and a countersignature take 20 KiB. */
export const MAX_NOTARY_ENVELOPE_BYTES = MIB
/** An RFC 3161 timestamp token, DER bytes: real ones take four to eight thousand. */
export const MAX_TIMESTAMP_BYTES = 64 * KIB
/** Nesting of a CBOR value, levels: a COSE envelope needs four. */
export const MAX_CBOR_DEPTH = 8
/** Items of one CBOR value: a COSE envelope has about forty. */
export const MAX_CBOR_ITEMS = 500
/** Nesting of a JWS envelope and of what it carries, levels: four are needed. */
export const MAX_NOTARY_JSON_DEPTH = 16
/** Values in one JSON document of a JWS envelope. */
export const MAX_NOTARY_JSON_VALUES = 1000
/** Identities of one trust policy, and the characters of one. */
export const MAX_TRUSTED_IDENTITIES = 100
export const MAX_IDENTITY_CHARS = 2 * KIB
/** Notary Project signatures tried for one image, Kyverno's own `MaxSignatureAttempts`. */
export const MAX_NOTARY_ATTEMPTS = 10
/** An OCSP response, bytes: real ones take one to five thousand. */
export const MAX_OCSP_BYTES = 64 * KIB
/** A CRL, bytes: a hundred thousand entries, gone through in 100 ms; those of code-signing authorities take less than half. */
export const MAX_CRL_BYTES = 4 * MIB
/** OCSP responders, and CRLs, asked about one certificate: real ones name one of each. */
export const MAX_REVOCATION_URLS = 2
/** One OCSP request, and one CRL, without an answer, milliseconds: the Notary Project's own thresholds. */
export const OCSP_TIMEOUT_MS = 2000
export const CRL_TIMEOUT_MS = 5000
/** How far the beginning of an OCSP response or a CRL may lie ahead, milliseconds: the difference between two clocks. */
export const REVOCATION_SKEW_MS = 5000
/** No answer about a certificate is kept longer, milliseconds, however long it counts: a revocation should take effect soon. */
export const MAX_REVOCATION_TTL_MS = 3_600_000
/** RSA modulus, bits: shorter is breakable, longer only costs time. */
export const MIN_RSA_BITS = 2048
export const MAX_RSA_BITS = 8192
/** Entries of transparency logs, and timestamps, of one Sigstore bundle: what sigstore-go reads at most. */
export const MAX_LOG_ENTRIES = 32
/** Certificates of one chain. */
export const MAX_CHAIN_CERTIFICATES = 10
/** Signed certificate timestamps of one certificate: real ones have one to three. */
export const MAX_CERTIFICATE_TIMESTAMPS = 32
/** Certificates of a timestamp authority in a policy, and intermediates among them: Kyverno's own bounds. */
export const MAX_TSA_CERTIFICATES = 12
export const MAX_TSA_INTERMEDIATES = 10
/** Certificates of a signer's chain in a policy: Kyverno's own bound. */
export const MAX_POLICY_CHAIN_CERTIFICATES = 11
/** Hashes of an inclusion proof: a log of 2^63 entries has 63. */
export const MAX_PROOF_HASHES = 64
/** A log's signed checkpoint, characters: a hundred witnesses take 20 KiB. */
export const MAX_CHECKPOINT_CHARS = 64 * KIB
/** A Sigstore trusted root, bytes: the public one takes 7 KiB. */
export const MAX_TRUSTED_ROOT_BYTES = MIB
/** One file of a TUF repository has to be here after this long, milliseconds: the largest takes seconds on a slow line. */
export const TUF_DOWNLOAD_MS = 30_000
/** From this long before the last key of its kind ends operators are told, days: time for a refresh and a rollout. */
export const TRUST_ENDS_SOON_DAYS = 30
/** Metadata beside a trusted root that ended this long ago says nobody has refreshed it, days: authorities announce changes months ahead. */
export const TRUST_STALE_DAYS = 90
/** A KMS reference, characters: the longest ARN KMS documents, plus scheme and endpoint. */
export const MAX_KMS_REFERENCE_CHARS = 2400
/** A message that KMS verifies as it is (`MessageType: RAW`), bytes: its own limit. */
export const MAX_KMS_MESSAGE_BYTES = 4096
/** The answer of Vault about a key, bytes: every version of it with its public key; one that was rotated daily for years takes some. */
export const MAX_VAULT_ANSWER_BYTES = MIB
/** Nesting of an answer of Vault, levels: four are needed. */
export const MAX_VAULT_DEPTH = 16
/** Redirects followed for one registry request. */
export const MAX_REDIRECTS = 5
/** Requests of one review that are under way at once: Workers allows six connections. */
export const MAX_CONCURRENT_CALLS = 6
/** One registry request without an answer, milliseconds. */
export const REGISTRY_CALL_TIMEOUT_MS = 5000
/** One KMS request without an answer, milliseconds. */
export const KMS_CALL_TIMEOUT_MS = 1500
/** Tries of one registry or KMS call, the first included; only throttling and 5xx are tried again. */
export const MAX_TRIES = 2
/** Longest random wait before a registry call is tried again, milliseconds: spreads the isolates that failed together. */
export const REGISTRY_RETRY_DELAY_MS = 200

/** A KMS public key, milliseconds: key material never changes in place; an alias or a disabled key may. */
export const KMS_KEY_TTL_MS = 300_000
/** A KMS refusal, milliseconds: short, so that a grant takes effect soon. */
export const KMS_REFUSAL_TTL_MS = 30_000
/** A KMS public key past its time that still serves while KMS throttles or does not answer, milliseconds. */
export const KMS_STALE_MS = 600_000
/** KMS is left alone this long after it failed while a stale key serves, milliseconds: an outage must not slow every request. */
export const KMS_STALE_RETRY_MS = 5000
/** Wait before the second try of a KMS call, milliseconds, up to half of it again as jitter: the SDK's own is ten times that. */
export const KMS_BACKOFF_MS = 40
/** A registry token without `expires_in`, milliseconds (the token specification's default). */
export const REGISTRY_TOKEN_TTL_MS = 60_000
/** Registry tokens kept between reviews: those of attackers' registries may be as long as `MAX_TOKEN_BYTES`. */
export const MAX_KEPT_TOKENS = 200
/** A registry token is given up this long before it ends, milliseconds: it has to last for the requests it was fetched for. */
export const REGISTRY_TOKEN_SLACK_MS = 10_000
/** No registry token is kept longer, milliseconds, whatever `expires_in` says: a revoked login should not live on. */
export const MAX_REGISTRY_TOKEN_TTL_MS = 3_600_000
/** A login that a cloud provider gave out is renewed this long before it ends, milliseconds: tokens are then asked for with it. */
export const LOGIN_SLACK_MS = 60_000
/** A provider that refused a login is left alone this long, milliseconds: short, so that a grant takes effect soon. */
export const LOGIN_REFUSAL_TTL_MS = 10_000
/** What a Google service account asserts about itself, milliseconds: the most that Google takes is an hour, seconds are enough. */
export const GOOGLE_ASSERTION_TTL_MS = 300_000
/** A refresh token of Azure Container Registry, milliseconds: it says no expiry of its own where it is given out, and has three hours. */
export const AZURE_REFRESH_TOKEN_TTL_MS = 10_800_000
/** A verified fact in an isolate's memory, milliseconds. */
export const FACT_TTL_MS = 300_000
/** A rejected one, milliseconds: a missing signature may be pushed a moment later. */
export const REJECTION_TTL_MS = 10_000
/** Entries of one isolate's cache. */
export const MAX_CACHE_ENTRIES = 2000

/** A seal lives this long by default, milliseconds: both phases of one API request take less than a minute. */
export const SEAL_TTL_MS = 120_000
/** No seal lives longer, milliseconds, whatever the config says. */
export const MAX_SEAL_TTL_MS = 300_000
/** Clock difference between two isolates, milliseconds. */
export const SEAL_SKEW_MS = 5000
/** Body of a seal before base64url, bytes. */
export const MAX_SEAL_BYTES = 32 * KIB
/** A secret that seals are made with, bytes: as many as the MAC has. */
export const MIN_SECRET_BYTES = 32
/** The seal annotation, characters: longer ones are not even decoded. */
export const MAX_SEAL_CHARS = 48 * KIB
/** All annotations of one object, bytes: the API server's own limit (TotalAnnotationSizeLimitB). */
export const MAX_ANNOTATIONS_BYTES = 256 * KIB
/** The readable outcomes record, bytes: what fits beside a seal and other people's annotations. */
export const MAX_OUTCOMES_BYTES = 64 * KIB

/** Requests of one review to the API server of its cluster: policies that read more read the cluster, not what a Pod is about. */
export const MAX_CLUSTER_CALLS = 50
/** One answer of an API server, bytes: an object takes up to 1.5 MiB in etcd, a list of a thousand Pods more than this. */
export const MAX_CLUSTER_ANSWER_BYTES = 4 * MIB
/** All answers of an API server in one review, bytes: they are kept, parsed, until it is answered. */
export const MAX_CLUSTER_REVIEW_BYTES = 8 * MIB
/** Values in one answer of an API server. */
export const MAX_CLUSTER_VALUES = 200_000
/** One request to an API server without an answer, milliseconds: it lies in the path of an admission it waits for itself. */
export const CLUSTER_CALL_TIMEOUT_MS = 3000
/** A namespace in an isolate's memory, milliseconds: a label that is added or taken away counts this much later. */
export const NAMESPACE_TTL_MS = 30_000
/** Namespaces that one isolate keeps, and the bytes of one: what is larger has annotations that nobody asks for often. */
export const MAX_CACHED_NAMESPACES = 500
export const MAX_CACHED_NAMESPACE_BYTES = 16 * KIB
/** What resources an API group version has, milliseconds: kinds do not change their names. */
export const DISCOVERY_TTL_MS = 600_000
/** PEM certificates of an API server's authority in the config, characters: a bundle with old and new ones takes a few thousand. */
export const MAX_CLUSTER_CA_CHARS = 64 * KIB
/** Requests of policies (`http.get`, `http.post`) in one review. */
export const MAX_HTTP_CALLS = 20
/** One answer to a policy's request, bytes; what a policy sends is bounded by the cost of making it. */
export const MAX_HTTP_ANSWER_BYTES = MIB
/** All answers to requests of policies in one review, bytes. */
export const MAX_HTTP_REVIEW_BYTES = 4 * MIB
/** One request of a policy without an answer, milliseconds. */
export const HTTP_CALL_TIMEOUT_MS = 5000
/** Headers of a policy's request, and the characters of one. */
export const MAX_HTTP_HEADERS = 50
export const MAX_HTTP_HEADER_CHARS = 8 * KIB
/** Requests of one review to its cluster and of its policies that are under way at once, beside those to registries. */
export const MAX_CONTEXT_CONCURRENCY = 2
/** A text that `random` makes, characters. */
export const MAX_RANDOM_CHARS = 1024
/** What a policy's `gzip.decompress` may give, bytes. */
export const MAX_UNPACKED_BYTES = 4 * MIB

/** A policy document, bytes. */
export const MAX_POLICY_BYTES = MIB
/** YAML aliases expanded in one document: stops the "billion laughs". */
export const MAX_YAML_ALIASES = 100
/** Values in one YAML document that is no policy, aliases expanded: an object of the largest size etcd takes has far fewer. */
export const MAX_YAML_VALUES = 1_000_000
/** Values in one policy document, aliases expanded: a large real policy has a few hundred. */
export const MAX_POLICY_VALUES = 100_000
/** An image glob, characters: longer than any reference it could match. */
export const MAX_GLOB_CHARS = 1024

/** A signed policy bundle as it is stored, bytes: some four hundred policies; reading that many takes a second, and an isolate holds it twice meanwhile. */
export const MAX_POLICY_BUNDLE_BYTES = 4 * MIB
/** Values in it: an expression of fifty characters has about two hundred. */
export const MAX_POLICY_BUNDLE_VALUES = 1_000_000
/** Fetching and checking a policy bundle, milliseconds: nobody waits for it but a function that has just started. */
export const POLICY_BUNDLE_TIMEOUT_MS = 5000
/** How long reviews of a function that has just started wait for its first policy bundle, milliseconds, and a third of their own time at most. */
export const POLICY_BUNDLE_WAIT_MS = 2000
/** Looks for the first policy bundle that are under way at the same time: anybody can send requests, and each look may hold a whole bundle. */
export const MAX_POLICY_BUNDLE_LOOKS = 4
/** How often a request whose policies somebody else looks for asks whether they are there, milliseconds. */
export const POLICY_BUNDLE_POLL_MS = 25
/** Least time between two looks for a policy bundle, milliseconds: each isolate looks for itself. */
export const MIN_POLICY_BUNDLE_REFRESH_MS = 10_000
/** The place of policy bundles is left alone this long after it failed, milliseconds, or for the time between two looks where that is less. */
export const POLICY_BUNDLE_RETRY_MS = 10_000
/** The most that the alarm about old policies may wait, milliseconds: thirty days. */
export const MAX_POLICY_BUNDLE_AGE_MS = 2_592_000_000
/** Clock difference between whoever signs a policy bundle and a function, milliseconds. */
export const POLICY_BUNDLE_SKEW_MS = 300_000
/** An ETag that is sent back, characters: stores use a hash. */
export const MAX_ETAG_CHARS = 256
