"""Who owns each queue, what that is worth and what would be, told once more: in DuckDB's SQL, from the raw documents.

Rules of this file:
- Nothing of rmqlb is used: a snapshot is read as JSON, and the rules of RocketMQ's clients are written here anew.
- What is told is what the tables ASSIGNMENTS, SCORES and WHAT_IF hold under AVG and AVG_BY_CIRCLE.
- A consumer computes its own share, with the queues and consumers as its own library sorts them: Java by UTF-16, Go and
  C++ by bytes. C++ runs AVG whatever the group's strategy is; a group of nothing else refuses the others.
"""

from __future__ import annotations

_DOCUMENTS = r"""
CREATE TABLE documents AS
SELECT regexp_extract(filename, 'cluster=([^/]+)', 1) AS cluster, json->'data' AS data
FROM read_json_objects('{dumps}/**/snapshot.json.gz', filename = true);

-- What sorts behind all others in UTF-8 sorts before U+E000 and up in UTF-16.
CREATE MACRO utf16(name) AS regexp_replace(name, '([\x{{E000}}-\x{{FFFF}}])', chr(1114111) || '\1', 'g');

CREATE TABLE all_groups AS
SELECT cluster, j->>'group' AS "group", j AS j FROM (
    SELECT cluster, unnest(CAST(data->'groups' AS JSON[])) AS j FROM documents
);
CREATE TABLE routes AS
SELECT cluster, j->>'topic' AS topic, j->'route' AS j FROM (
    SELECT cluster, unnest(CAST(data->'topics' AS JSON[])) AS j FROM documents
);
CREATE TABLE looked AS
SELECT cluster, "group", j->>'topic' AS topic, j->>'brokerName' AS brokerName, CAST(j->>'queueId' AS INTEGER) AS queueId,
    CAST(j->'owners' AS VARCHAR[]) AS observed,
    greatest(CAST(j->>'brokerOffset' AS BIGINT) - greatest(CAST(j->>'consumerOffset' AS BIGINT), 0), 0) AS lag
FROM (SELECT cluster, "group", unnest(CAST(j->'queues' AS JSON[])) AS j FROM all_groups);
"""

_MEMBERS = r"""
CREATE TABLE listed AS
SELECT cluster, "group", view, generate_subscripts(connections, 1) AS nth, unnest(connections) AS j FROM (
    SELECT cluster, "group", generate_subscripts(views, 1) AS view,
        CAST(unnest(views)->'connections' AS JSON[]) AS connections
    FROM (SELECT cluster, "group", CAST(j->'views' AS JSON[]) AS views FROM all_groups)
);
-- A client id is there as often as the broker says that lists it most often; its first connection there counts.
CREATE TABLE ids AS
SELECT cluster, "group", clientId, max(number) AS processes, arg_min(language, (-number, view)) AS language FROM (
    SELECT cluster, "group", j->>'clientId' AS clientId, view, count(*) AS number,
        arg_min(j->>'language', nth) AS language
    FROM listed GROUP BY ALL
) GROUP BY ALL;
CREATE TABLE reports AS
SELECT cluster, "group", j->>'clientId' AS clientId, CAST(j->'topics' AS VARCHAR[]) AS topics
FROM (SELECT cluster, "group", unnest(CAST(j->'reports' AS JSON[])) AS j FROM all_groups);

CREATE TABLE groups AS
SELECT cluster, "group", j FROM all_groups WHERE
    coalesce(j->>'messageModel', '') <> 'BROADCASTING'
    AND coalesce(j->>'consumeType', '') <> 'CONSUME_POP'
    AND json_type(j->'views') = 'ARRAY'
    AND NOT coalesce(CAST(j->>'pollingNum' AS BIGINT), 0) > 0
    AND NOT coalesce(j->>'requestModes', '') LIKE '%POP%'
    AND (cluster, "group") NOT IN (
        SELECT cluster, "group" FROM ids GROUP BY ALL
        HAVING bool_and(regexp_matches(clientId, '^.+@\d+@\d+@[0-9a-z]+$'))
    );
CREATE TABLE members AS
SELECT cluster, "group", clientId, sdk, processes, unnest(range(processes)) AS process FROM (
    SELECT *, CASE WHEN language = 'GO' THEN 'go' WHEN language IN ('CPP', 'PYTHON', 'NODE_JS') THEN 'cpp'
        ELSE 'java' END AS sdk
    FROM ids SEMI JOIN groups USING (cluster, "group")
);
"""

_QUEUES = r"""
-- Read queues of readable brokers; of a static topic its logical queues.
CREATE TABLE queues AS
SELECT cluster, topic, brokerName, unnest(range(number))::INTEGER AS queueId FROM (
    SELECT DISTINCT cluster, topic, d->>'brokerName' AS brokerName, CAST(d->>'readQueueNums' AS INTEGER) AS number FROM (
        SELECT cluster, topic, unnest(CAST(j->'queueDatas' AS JSON[])) AS d FROM routes
        WHERE coalesce(json_type(j->'topicQueueMappingByBroker'), 'NULL') = 'NULL'
    ) WHERE CAST(d->>'perm' AS INTEGER) & 4 > 0
    UNION ALL
    SELECT cluster, topic, '__syslo__' || CASE scope WHEN '__global__' THEN 'global__' ELSE scope END, max(total) FROM (
        SELECT cluster, topic, m->>'scope' AS scope, CAST(m->>'totalQueues' AS INTEGER) AS total FROM (
            SELECT cluster, topic, unnest(CAST(j->'topicQueueMappingByBroker'->'$.*' AS JSON[])) AS m FROM routes
            WHERE json_type(j->'topicQueueMappingByBroker') = 'OBJECT'
        )
    ) GROUP BY ALL
);
CREATE TABLE pairs AS
SELECT DISTINCT cluster, "group", topic FROM (
    SELECT cluster, "group", unnest(CAST(j->'topics' AS VARCHAR[])) AS topic FROM groups
) SEMI JOIN routes USING (cluster, topic) WHERE NOT starts_with(topic, '%RETRY%');
"""

_OWNERS = r"""
CREATE OR REPLACE TABLE claims AS
WITH sdks AS (SELECT unnest(['java', 'other']) AS sort),
placed_members AS (
    SELECT DISTINCT cluster, "group", state, sort, clientId, sdk, min(place) OVER mine AS place,
        count(*) OVER (PARTITION BY cluster, "group", state, sort) AS members
    FROM (
        SELECT *, row_number() OVER (
            PARTITION BY cluster, "group", state, sort
            ORDER BY CASE WHEN sort = 'java' THEN utf16(clientId) ELSE clientId END, process
        ) - 1 AS place FROM member_states, sdks
    ) WINDOW mine AS (PARTITION BY cluster, "group", state, sort, clientId)
),
placed_queues AS (
    SELECT *, count(*) OVER of_topic AS queues, row_number() OVER (
        PARTITION BY cluster, topic, without, sort
        ORDER BY CASE WHEN sort = 'java' THEN utf16(brokerName) ELSE brokerName END, queueId
    ) - 1 AS place FROM queue_states, sdks
    WINDOW of_topic AS (PARTITION BY cluster, topic, without, sort)
)
SELECT s.cluster, s."group", s.state, s.without, s.strategy, q.topic, q.brokerName, q.queueId, m.clientId
FROM states AS s
JOIN pairs AS p ON p.cluster = s.cluster AND p."group" = s."group"
JOIN placed_members AS m ON m.cluster = s.cluster AND m."group" = s."group" AND m.state = s.state
    AND m.sort = CASE WHEN m.sdk = 'java' THEN 'java' ELSE 'other' END
JOIN placed_queues AS q ON q.cluster = s.cluster AND q.topic = p.topic AND q.without = s.without AND q.sort = m.sort
LEFT JOIN reports AS r ON r.cluster = s.cluster AND r."group" = s."group" AND r.clientId = m.clientId
WHERE (r.topics IS NULL OR list_contains(r.topics, p.topic)) AND m.place = CASE
    WHEN s.strategy = 'AVG_BY_CIRCLE' AND m.sdk <> 'cpp' THEN q.place % m.members
    WHEN q.place < q.queues % m.members * (q.queues // m.members + 1) THEN q.place // (q.queues // m.members + 1)
    ELSE q.queues % m.members
        + (q.place - q.queues % m.members * (q.queues // m.members + 1)) // (q.queues // m.members)
END;
"""

_NOW = r"""
CREATE TABLE refusing AS
SELECT cluster, "group" FROM members GROUP BY ALL HAVING bool_and(sdk = 'cpp');
CREATE TABLE now_states AS
SELECT cluster, "group", 'now' AS state, '' AS without, strategy
FROM groups, (SELECT unnest(['AVG', 'AVG_BY_CIRCLE']) AS strategy)
WHERE strategy = 'AVG' OR (cluster, "group") NOT IN (SELECT (cluster, "group") FROM refusing);
CREATE OR REPLACE VIEW states AS SELECT * FROM now_states;
CREATE OR REPLACE VIEW member_states AS SELECT *, 'now' AS state FROM members;
CREATE OR REPLACE VIEW queue_states AS SELECT *, '' AS without FROM queues;
"""

_ASSIGNMENTS = r"""
CREATE TABLE held AS
SELECT s.cluster, s."group", p.topic, q.brokerName, q.queueId, s.strategy, l.observed, l.lag,
    coalesce(list(c.clientId) FILTER (c.clientId IS NOT NULL), []) AS owners
FROM now_states AS s JOIN pairs AS p USING (cluster, "group") JOIN queues AS q USING (cluster, topic)
LEFT JOIN looked AS l USING (cluster, "group", topic, brokerName, queueId)
LEFT JOIN claims AS c USING (cluster, "group", strategy, topic, brokerName, queueId)
GROUP BY ALL;
CREATE TABLE assignments AS
SELECT cluster, "group", topic, brokerName, queueId, strategy, unnest(CASE WHEN len(owners) = 0 THEN [NULL] ELSE owners END)
    AS owner, len(owners)::INTEGER AS owners, lag,
    CASE WHEN observed IS NOT NULL THEN list_sort(list_distinct(observed)) <> list_sort(owners) END AS mismatch
FROM held;
"""


_LOADS = r"""
-- A consumer under each state: how many queues it owns, and their lag, null when that of one is not known.
CREATE OR REPLACE TABLE loads AS
SELECT s.cluster, s."group", s.state, s.without, s.strategy, m.clientId, count(c.topic) AS queues,
    CASE WHEN count(c.topic) = count(l.lag) THEN coalesce(sum(l.lag), 0) END AS lag
FROM states AS s
JOIN (SELECT DISTINCT cluster, "group", state, clientId FROM member_states) AS m USING (cluster, "group", state)
LEFT JOIN claims AS c USING (cluster, "group", state, without, strategy, clientId)
LEFT JOIN looked AS l USING (cluster, "group", topic, brokerName, queueId)
GROUP BY ALL;
"""

_SCORES = r"""
CREATE TABLE scores AS
SELECT * REPLACE (round(meanQueuesPerConsumer, 6) AS meanQueuesPerConsumer),
    CASE WHEN meanQueuesPerConsumer > 0 THEN round(maxQueuesPerConsumer / meanQueuesPerConsumer, 6) END AS imbalance
FROM (
    SELECT cluster, "group", strategy, count(DISTINCT topic)::INTEGER AS topics, count(*)::INTEGER AS queues,
        count_if(len(owners) = 0)::INTEGER AS unassigned, count_if(len(owners) > 1)::INTEGER AS duplicateOwners
    FROM held GROUP BY ALL
) LEFT JOIN (
    SELECT cluster, "group", strategy, count(*)::INTEGER AS consumers, count_if(queues = 0)::INTEGER AS idle,
        min(queues)::INTEGER AS minQueuesPerConsumer, avg(queues) AS meanQueuesPerConsumer,
        max(queues)::INTEGER AS maxQueuesPerConsumer,
        CASE WHEN count(lag) = count(*) THEN max(lag)::BIGINT END AS maxLagPerConsumer
    FROM loads GROUP BY ALL
) USING (cluster, "group", strategy);
"""

_CHANGES = r"""
CREATE TABLE libraries AS
SELECT cluster, "group", arg_min(sdk, (-number, CASE sdk WHEN 'java' THEN 0 WHEN 'go' THEN 1 ELSE 2 END)) AS sdk
FROM (SELECT cluster, "group", sdk, count(DISTINCT clientId) AS number FROM members GROUP BY ALL) GROUP BY ALL;
CREATE TABLE changed_members AS
SELECT *, unnest(['now', '+1']) AS state FROM members
UNION ALL SELECT g.cluster, g."group", 'placeholder-01', coalesce(l.sdk, 'java'), 1, 0, '+1'
    FROM groups AS g LEFT JOIN libraries AS l USING (cluster, "group");
CREATE TABLE lost AS
SELECT DISTINCT p.cluster, p."group", q.brokerName FROM pairs AS p JOIN queues AS q USING (cluster, topic)
WHERE NOT starts_with(q.brokerName, '__syslo__');
CREATE TABLE changed_queues AS
SELECT *, '' AS without FROM queues
UNION ALL SELECT q.*, b.brokerName FROM queues AS q
    JOIN (SELECT DISTINCT cluster, brokerName FROM lost) AS b ON b.cluster = q.cluster AND b.brokerName <> q.brokerName;
CREATE TABLE changes AS
SELECT cluster, "group", unnest(['now', '+1']) AS state, '' AS without, strategy FROM now_states
UNION ALL SELECT n.cluster, n."group", 'now', b.brokerName, n.strategy FROM now_states AS n
    JOIN lost AS b USING (cluster, "group");
CREATE OR REPLACE VIEW states AS SELECT * FROM changes SEMI JOIN pairs USING (cluster, "group");
CREATE OR REPLACE VIEW member_states AS SELECT * FROM changed_members;
CREATE OR REPLACE VIEW queue_states AS SELECT * FROM changed_queues;
"""

_WHAT_IF = r"""
-- Owners of each queue in each state: none where the broker is lost.
CREATE TABLE owned AS
SELECT s.cluster, s."group", s.state, s.without, s.strategy, p.topic, q.brokerName, q.queueId, l.lag,
    q.brokerName <> s.without AS stays, list_sort(coalesce(list(c.clientId) FILTER (c.clientId IS NOT NULL), [])) AS owners
FROM states AS s JOIN pairs AS p USING (cluster, "group") JOIN queues AS q USING (cluster, topic)
LEFT JOIN looked AS l USING (cluster, "group", topic, brokerName, queueId)
LEFT JOIN claims AS c USING (cluster, "group", state, without, strategy, topic, brokerName, queueId)
GROUP BY ALL;
CREATE TABLE compared AS
SELECT b.*, b.stays AND len(a.owners) > 0 AND len(b.owners) > 0 AND a.owners <> b.owners AS moves
FROM owned AS b JOIN owned AS a ON (a.cluster, a."group", a.strategy) = (b.cluster, b."group", b.strategy)
    AND a.state = 'now' AND a.without = '' AND (a.topic, a.brokerName, a.queueId) = (b.topic, b.brokerName, b.queueId)
WHERE b.state <> 'now' OR b.without <> '';
CREATE TABLE what_if AS
SELECT c.cluster, c."group", c.strategy, CASE WHEN c.without = '' THEN 'consumer-added' ELSE 'broker' END AS change,
    CASE WHEN c.without = '' THEN c.state ELSE c.without END AS subject,
    coalesce(any_value(l.consumers), 0) AS consumers, count_if(stays)::INTEGER AS queues,
    count_if(stays AND len(owners) = 0)::INTEGER AS unassigned,
    count_if(stays AND len(owners) > 1)::INTEGER AS duplicateOwners, coalesce(any_value(l.idle), 0) AS idle,
    count_if(moves)::INTEGER AS moved,
    CASE WHEN count_if(moves AND lag IS NULL) = 0 THEN coalesce(sum(lag) FILTER (moves), 0) END::BIGINT AS lagMoved
FROM compared AS c LEFT JOIN (
    SELECT cluster, "group", state, without, strategy, count(*)::INTEGER AS consumers, count_if(queues = 0)::INTEGER AS idle
    FROM loads GROUP BY ALL
) AS l USING (cluster, "group", state, without, strategy)
GROUP BY c.cluster, c."group", c.strategy, c.state, c.without;
"""

SCRIPT = _DOCUMENTS + _MEMBERS + _QUEUES + _NOW + _OWNERS + _ASSIGNMENTS + _LOADS + _SCORES + _CHANGES
SCRIPT += _OWNERS + _LOADS + _WHAT_IF
"""Makes, of the snapshots below `{dumps}`, the tables `assignments`, `scores` and `what_if`.

`what_if` has one consumer more, and each broker lost.
"""
