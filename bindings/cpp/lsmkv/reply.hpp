// Replies: a tree of nodes that is read in place. A Node points into a Reply and is valid as long
// as the Reply lives. A Reply owns its bytes and outlives the store.
//
//     for (auto item : db.lrange("queue", 0, -1)) std::cout << item.view();
//     for (auto [field, value] : db.hgetall("user:1").pairs()) ...
#ifndef LSMKV_REPLY_HPP
#define LSMKV_REPLY_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error.hpp"

namespace lsmkv {

/// The kind of a node.
enum class Kind : std::int32_t {
    nil = LSMKV_REPLY_NIL,
    status = LSMKV_REPLY_STATUS,
    error = LSMKV_REPLY_ERROR,
    integer = LSMKV_REPLY_INT,
    string = LSMKV_REPLY_STR,
    real = LSMKV_REPLY_DOUBLE,
    boolean = LSMKV_REPLY_BOOL,
    array = LSMKV_REPLY_ARRAY,
    map = LSMKV_REPLY_MAP,
    set = LSMKV_REPLY_SET,
    push = LSMKV_REPLY_PUSH,
    verbatim = LSMKV_REPLY_VERBATIM,
    bignum = LSMKV_REPLY_BIGNUM
};

class NodeIterator;
class PairIterator;
template <typename Owner>
class PairRange;

/// A node of a reply: nil, a text, a number, or a range of further nodes. A method that does not
/// fit the kind throws Error; for an error node, the Error has Redis's text.
class Node {
public:
    Node() noexcept = default;

    Kind kind() const noexcept {
        return at_ == nullptr ? Kind::nil : static_cast<Kind>(at_->kind);
    }
    bool is_nil() const noexcept { return kind() == Kind::nil; }
    bool is_error() const noexcept { return kind() == Kind::error; }

    /// The bytes of a text or an error.
    std::string_view view() const {
        switch (kind()) {
            case Kind::error:
            case Kind::status:
            case Kind::string:
            case Kind::verbatim:
            case Kind::bignum:
                return {reinterpret_cast<const char *>(arena_) + at_->off,
                        static_cast<std::size_t>(at_->len)};
            default:
                throw mismatch("the reply is no text");
        }
    }
    /// A copy of the bytes of a text.
    std::string str() const { return std::string(view()); }
    /// The bytes of a text; nothing for nil.
    std::optional<std::string_view> maybe() const {
        if (is_nil()) return std::nullopt;
        return view();
    }
    /// The number of an integer or boolean.
    std::int64_t integer() const {
        if (kind() == Kind::integer || kind() == Kind::boolean) return at_->num;
        throw mismatch("the reply is no integer");
    }
    /// The number of a double or an integer.
    double real() const {
        if (kind() == Kind::integer) return static_cast<double>(at_->num);
        if (kind() != Kind::real) throw mismatch("the reply is no number");
        double number;
        std::memcpy(&number, &at_->num, sizeof number);
        return number;
    }
    /// Returns this node; throws if it is an error.
    const Node &checked() const {
        if (is_error()) throw mismatch("");
        return *this;
    }

    /// Whether the node has children (a map alternates keys and values).
    bool is_aggregate() const noexcept {
        return kind() == Kind::array || kind() == Kind::map || kind() == Kind::set ||
               kind() == Kind::push;
    }
    /// The number of children; 0 for a node that cannot have any.
    std::size_t size() const noexcept {
        return is_aggregate() ? static_cast<std::size_t>(at_->num) : 0;
    }
    bool empty() const noexcept { return size() == 0; }
    inline NodeIterator begin() const;
    inline NodeIterator end() const;
    /// Returns child `index`, from 0. The cost grows with the nodes before it.
    inline Node operator[](std::size_t index) const;
    /// The children in pairs, of a map or of a range that alternates.
    inline PairRange<Node> pairs() const;
    /// Returns copies of the children's texts.
    inline std::vector<std::string> strings() const;

protected:
    Node(const lsmkv_node *nodes, const lsmkv_node *at, const std::uint8_t *arena) noexcept
        : nodes_(nodes), at_(at), arena_(arena) {}

private:
    friend class NodeIterator;
    Error mismatch(const char *otherwise) const {
        if (!is_error()) return Error(LSMKV_INVALID, otherwise);
        return Error(LSMKV_INVALID, str().c_str());
    }
    /// The node after this one and its descendants.
    const lsmkv_node *past() const noexcept { return is_aggregate() ? nodes_ + at_->off : at_ + 1; }

    const lsmkv_node *nodes_ = nullptr;
    const lsmkv_node *at_ = nullptr;
    const std::uint8_t *arena_ = nullptr;
};

/// Iterates over the children of a node.
class NodeIterator {
public:
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = Node;
    using difference_type = std::ptrdiff_t;
    using pointer = const Node *;
    using reference = Node;

    NodeIterator() noexcept = default;
    Node operator*() const noexcept { return node_; }
    const Node *operator->() const noexcept { return &node_; }
    NodeIterator &operator++() noexcept {
        node_.at_ = node_.past();
        return *this;
    }
    NodeIterator operator++(int) noexcept {
        NodeIterator before = *this;
        ++*this;
        return before;
    }
    bool operator==(const NodeIterator &other) const noexcept {
        return node_.at_ == other.node_.at_;
    }
    bool operator!=(const NodeIterator &other) const noexcept { return !(*this == other); }

private:
    friend class Node;
    NodeIterator(const Node &parent, const lsmkv_node *at) noexcept
        : node_(parent.nodes_, at, parent.arena_) {}
    Node node_;
};

/// Iterates over the children of a node in pairs.
class PairIterator {
public:
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = std::pair<Node, Node>;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = value_type;

    PairIterator() noexcept = default;
    explicit PairIterator(NodeIterator first) noexcept : first_(first) {}
    value_type operator*() const noexcept {
        NodeIterator second = first_;
        return {*first_, *++second};
    }
    PairIterator &operator++() noexcept {
        ++++first_;
        return *this;
    }
    PairIterator operator++(int) noexcept {
        PairIterator before = *this;
        ++*this;
        return before;
    }
    bool operator==(const PairIterator &other) const noexcept { return first_ == other.first_; }
    bool operator!=(const PairIterator &other) const noexcept { return !(*this == other); }

private:
    NodeIterator first_;
};

/// The children of a node in pairs. Owner is Node, or Reply for a range that keeps it alive.
template <typename Owner>
class PairRange {
public:
    explicit PairRange(Owner owner) : owner_(std::move(owner)) {
        if (owner_.size() % 2 != 0) throw Error(LSMKV_INVALID, "the reply has no pairs");
    }
    PairIterator begin() const { return PairIterator(owner_.begin()); }
    PairIterator end() const { return PairIterator(owner_.end()); }
    std::size_t size() const noexcept { return owner_.size() / 2; }
    bool empty() const noexcept { return owner_.empty(); }

private:
    Owner owner_;
};

inline NodeIterator Node::begin() const {
    checked();
    return is_aggregate() ? NodeIterator(*this, at_ + 1) : NodeIterator();
}
inline NodeIterator Node::end() const {
    return is_aggregate() ? NodeIterator(*this, past()) : NodeIterator();
}
inline Node Node::operator[](std::size_t index) const {
    if (index >= checked().size()) throw Error(LSMKV_OUT_OF_RANGE, "the reply has no such child");
    auto child = begin();
    while (index-- > 0) ++child;
    return *child;
}
inline PairRange<Node> Node::pairs() const { return PairRange<Node>(*this); }
inline std::vector<std::string> Node::strings() const {
    std::vector<std::string> all;
    all.reserve(size());
    for (const Node child : *this) all.push_back(child.str());
    return all;
}

/// The reply of a command. It is also its own root node.
class Reply : public Node {
public:
    Reply() noexcept = default;
    /// Takes ownership of a reply of the C ABI; NULL becomes nil.
    explicit Reply(lsmkv_reply *reply) noexcept : Node(root(reply)), reply_(reply) {}
    Reply(Reply &&other) noexcept
        : Node(std::exchange(static_cast<Node &>(other), Node())),
          reply_(std::exchange(other.reply_, nullptr)) {}
    Reply &operator=(Reply &&other) noexcept {
        if (this != &other) {
            lsmkv_reply_free(reply_);
            Node::operator=(std::exchange(static_cast<Node &>(other), Node()));
            reply_ = std::exchange(other.reply_, nullptr);
        }
        return *this;
    }
    Reply(const Reply &) = delete;
    Reply &operator=(const Reply &) = delete;
    ~Reply() { lsmkv_reply_free(reply_); }

    PairRange<Node> pairs() const & { return Node::pairs(); }
    /// Returns the children in pairs. The range keeps a temporary reply alive.
    PairRange<Reply> pairs() && { return PairRange<Reply>(std::move(*this)); }

    /// The reply for calls of the C ABI. This object keeps ownership.
    const lsmkv_reply *handle() const noexcept { return reply_; }

private:
    struct Root : Node {
        Root(const lsmkv_node *nodes, const std::uint8_t *arena) noexcept
            : Node(nodes, nodes, arena) {}
    };
    static Node root(const lsmkv_reply *reply) noexcept {
        const lsmkv_node *nodes = nullptr;
        const std::uint8_t *arena = nullptr;
        if (reply != nullptr) lsmkv_reply_view(reply, &nodes, nullptr, &arena, nullptr);
        return Root(nodes, arena);
    }
    lsmkv_reply *reply_ = nullptr;
};

namespace detail {

template <>
struct Output<Reply> {
    using type = lsmkv_reply *;
    static Reply made(lsmkv_status, lsmkv_reply *output) noexcept { return Reply(output); }
};

}  // namespace detail
}  // namespace lsmkv

#endif  // LSMKV_REPLY_HPP
