#pragma once

#include <memory>
#include <vector>

#include "programs/python/array.h"
#include "programs/python/arrow_abi.h"

namespace lockstep::python {

/// Arrow's view of a table: a struct whose fields are the columns, each with its unit in the metadata ("unit"). Values,
/// offsets and texts are handed out where they lie; only null marks and bools are packed into bits. Categories are
/// dictionary-encoded, lists and texts have 64-bit offsets. The consumer of a structure calls its release; until then
/// the structure keeps its data alive. Cost: O(columns), O(rows) for columns with nulls or bools.

void ExportSchema(const Table& table, ArrowSchema* out);
void ExportArray(const Table& table, ArrowArray* out);

/// One record batch for each of `chunks`, which have the columns of the first. At least one chunk.
void ExportStream(std::vector<std::shared_ptr<const Table>> chunks, ArrowArrayStream* out);

/// A column by itself: for consumers of single arrays.
void ExportFieldSchema(const Field& field, ArrowSchema* out);
void ExportFieldArray(const Field& field, ArrowArray* out);

}  // namespace lockstep::python
